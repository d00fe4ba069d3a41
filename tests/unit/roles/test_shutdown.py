# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a layout starts and stops the unit that stops the router first at a shutdown."""

from __future__ import annotations

import pytest
import yaml
from support.paths import ROLES
from support.roles import calls, tasks, variables_of

FILES = "onprem.lb.config_files"
UNIT = "onprem-lb-shutdown.service"


def given_to(*, routes=True, pods=None):
    """Return what the unit's module is given on a node, with a VRRP router or without one."""
    of_role = variables_of("layout")
    of_role["__layout_shutdown_files"][0].pop("content")  # see tests/golden/shutdown.service
    variables = {
        **of_role,
        "layout_definition": yaml.safe_load((ROLES / "ipi" / "vars" / "main.yml").read_text())["__ipi_layout"],
        "__layout_me": {"router": {"instances": [{}] if routes else []}, "pods": pods or {}},
    }
    ((_module, given),) = calls("layout", variables, FILES, tasks_from="units/shutdown.yml")
    return given


@pytest.mark.parametrize(
    "options, state, file",
    [
        ({}, "started", "present"),
        ({"routes": False}, "stopped", "absent"),
        ({"pods": {"agent_image": "an-image"}}, "stopped", "absent"),
    ],
    ids=["router", "no router", "static pods"],
)
def test_it_runs_where_a_router_does(options, state, file):
    given = given_to(**options)
    assert [(unit["name"], unit["state"]) for unit in given["units"]] == [(UNIT, state)]
    assert [(each["path"], each["state"]) for each in given["files"]] == [(f"/etc/systemd/system/{UNIT}", file)]


def test_no_change_restarts_it_which_would_stop_the_router():
    assert [unit["on_change"] for unit in given_to()["units"]] == ["unchanged"]


def test_no_run_waits_for_it_because_it_waits_for_programs_that_may_need_the_vip():
    assert [unit["wait"] for unit in given_to()["units"]] == [False]


def test_a_router_that_a_node_gives_up_is_not_stopped_before_the_others_are_proved():
    """The stop of the unit stops the router, so it waits for unused.yml, which comes after the verification."""
    including = {
        file: task["when"]
        for file in ("configure.yml", "unused.yml")
        for task in tasks("layout", file)
        if task.get("ansible.builtin.include_tasks") == "units/shutdown.yml"
    }
    assert including == {
        "configure.yml": "__layout_shutdown_wanted",
        "unused.yml": "__layout_has_shutdown and not __layout_has_router",
    }
    order = [task["name"] for task in tasks("layout", "unused.yml")]
    assert order.index("Unused | Stop and disable the router") < order.index(
        "Unused | Stop nothing at a shutdown any more"
    )
