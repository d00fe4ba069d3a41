# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a layout starts and stops the unit that stops the router first at a shutdown."""

from __future__ import annotations

import pytest
import yaml
from support.paths import ROLES
from support.roles import calls, tasks, variables_of

SYSTEMD, FILES = "ansible.builtin.systemd_service", "onprem.lb.config_files"
UNIT = "onprem-lb-shutdown.service"
RUNS = {"active_units": [UNIT], "enabled_units": [UNIT], "existing_units": [UNIT]}
NOTHING = {"active_units": [], "enabled_units": [], "existing_units": []}


def called(host, *modules, routes=True, changed=False, check=False, pods=None):
    """Return the calls on a node, with a VRRP router or without one, for a unit that was changed or not."""
    of_role = variables_of("layout")
    of_role["__layout_shutdown_files"][0].pop("content")  # see tests/golden/shutdown.service
    variables = {
        **of_role,
        "ansible_check_mode": check,
        "layout_definition": yaml.safe_load((ROLES / "ipi" / "vars" / "main.yml").read_text())["__ipi_layout"],
        "__layout_host": host,
        "__layout_me": {"router": {"instances": [{}] if routes else []}, "pods": pods or {}},
        "__layout_shutdown_written": {"changed": changed},
    }
    return calls("layout", variables, *modules, tasks_from="shutdown.yml")


@pytest.mark.parametrize(
    "host, options, states",
    [
        (NOTHING, {"changed": True}, ["started"]),
        (RUNS, {"changed": True}, ["started"]),
        ({**RUNS, "active_units": []}, {}, ["started"]),
        ({**RUNS, "enabled_units": []}, {}, ["started"]),
        (RUNS, {}, []),
        (NOTHING, {"changed": True, "check": True}, []),
        (RUNS, {"routes": False}, ["stopped"]),
        (NOTHING, {"routes": False}, []),
        (RUNS, {"pods": {"agent_image": "an-image"}}, ["stopped"]),
    ],
    ids=[
        "first",
        "new unit",
        "stopped",
        "disabled",
        "second",
        "check mode",
        "no router",
        "never had one",
        "static pods",
    ],
)
def test_it_runs_where_a_router_does_and_is_never_restarted_which_would_stop_that(host, options, states):
    assert [given["state"] for _module, given in called(host, SYSTEMD, **options)] == states


def test_no_run_waits_for_it_because_it_waits_for_programs_that_may_need_the_vip():
    ((_module, given),) = called(NOTHING, SYSTEMD, changed=True)
    assert given["no_block"] is True


@pytest.mark.parametrize("routes, state", [(True, "present"), (False, "absent")])
def test_its_unit_is_written_where_a_router_runs_and_deleted_elsewhere(routes, state):
    ((_module, given),) = called(RUNS, FILES, routes=routes)
    assert [(file["path"], file["state"]) for file in given["files"]] == [(f"/etc/systemd/system/{UNIT}", state)]


def test_a_router_that_a_node_gives_up_is_not_stopped_before_the_others_are_proved():
    """The stop of the unit stops the router, so it waits for unused.yml, which comes after the verification."""
    including = {
        file: task["when"]
        for file in ("configure.yml", "unused.yml")
        for task in tasks("layout", file)
        if task.get("ansible.builtin.include_tasks") == "shutdown.yml"
    }
    assert including == {
        "configure.yml": "__layout_shutdown_wanted",
        "unused.yml": "__layout_has_shutdown and not __layout_has_router",
    }
    order = [task["name"] for task in tasks("layout", "unused.yml")]
    assert order.index("Unused | Stop the router, so that it does not start again") < order.index(
        "Unused | Stop nothing at a shutdown any more"
    )
