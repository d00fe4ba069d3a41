# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role direct_server does on a host: it reloads what differs, and cuts no connection."""

from __future__ import annotations

import pytest
from support.paths import ROLES
from support.roles import calls, refusals, tasks, variables_of

SYSTEMD, FILES, DELETED = "ansible.builtin.systemd_service", "onprem.lb.config_files", "ansible.builtin.file"
DEBUG, REFUSE = "ansible.builtin.debug", "onprem.lb.refuse"
UNIT = "onprem-lb-direct-server.service"
RUNS = {"active_units": [UNIT], "enabled_units": [UNIT], "existing_units": [UNIT]}
NOTHING = {"active_units": [], "enabled_units": [], "existing_units": []}
GOOD = {"faults": [], "config": "{}\n", "differences": []}


def known(host=None, changed=False, **others):
    """Return the role's variables on a host, on which the unit runs unless another one is given."""
    return {
        **variables_of("direct_server"),
        "ansible_check_mode": False,
        "direct_server_state": "present",
        "__direct_server_seen": GOOD,
        "__direct_server_files": [],
        "__direct_server_host": host or RUNS,
        "__direct_server_configured": {"changed": changed},
        "__direct_server_verified": GOOD,
        "item": "",
        **others,
    }


def differing():
    return {**GOOD, "differences": ["192.0.2.100/32 is not on lo."]}


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"host": NOTHING, "changed": True, "__direct_server_seen": differing()}, ["reloaded"]),
        ({"__direct_server_seen": differing()}, ["reloaded"]),
        ({"changed": True}, ["started"]),
        ({"host": {**RUNS, "enabled_units": []}}, ["started"]),
        ({}, []),
        ({"changed": True, "__direct_server_seen": differing(), "ansible_check_mode": True}, []),
    ],
    ids=["first run", "flushed", "other unit", "disabled", "second run", "check mode"],
)
def test_it_is_reloaded_for_what_differs_and_never_restarted(given, expected):
    found = calls("direct_server", known(**given), SYSTEMD, tasks_from="configure.yml")
    assert [arguments["state"] for _module, arguments in found] == expected
    assert all(arguments["enabled"] for _module, arguments in found)


@pytest.mark.parametrize("check", [True, False])
def test_what_differs_is_a_change_in_check_mode_too(check):
    variables = known(__direct_server_seen=differing(), ansible_check_mode=check)
    assert calls("direct_server", variables, DEBUG, tasks_from="configure.yml") == [
        (DEBUG, {"msg": differing()["differences"]})
    ]
    (said,) = [task for task in tasks("direct_server", "configure.yml") if DEBUG in task]
    assert said["changed_when"] is True


def test_what_is_not_in_force_at_the_end_fails_the_run():
    variables = known(__direct_server_verified=differing())
    ((_module, given),) = calls("direct_server", variables, REFUSE, tasks_from="verify.yml")
    assert given["faults"] == differing()["differences"]
    assert calls("direct_server", {**variables, "ansible_check_mode": True}, REFUSE, tasks_from="verify.yml") == []


def test_obstacles_of_every_kind_are_refused_together():
    given = {
        "__direct_server_unknown": ["a."],
        "__direct_server_host": {"problems": ["b."], "obstacles": {UNIT: "c."}},
        "__direct_server_seen": {**GOOD, "faults": ["d."]},
    }
    assert sorted(refusals("direct_server", "preflight.yml", given)) == ["a.", "b.", "c.", "d."]


def test_nothing_changes_before_the_preflight_is_over():
    stages = [task["name"] for task in tasks("direct_server", "main.yml")[1]["block"]]
    assert stages == ["Preflight", "Configure", "Verify"]
    assert {key for task in tasks("direct_server", "preflight.yml") for key in task if "." in key} == {
        "onprem.lb.component_info",
        "onprem.lb.host_info",
        "onprem.lb.refuse",
    }


def test_a_removal_stops_the_unit_and_deletes_what_is_its_own():
    ((_module, given),) = calls("direct_server", known(), SYSTEMD, FILES, DELETED, tasks_from="remove.yml")
    assert given["units"] == [{"name": UNIT, "state": "stopped"}]
    assert all(each["own_only"] and each["state"] == "absent" for each in given["files"])
    assert given["folders"] == ["/usr/local/lib/onprem-lb-direct-server", "/etc/onprem-lb-direct-server"]


def test_a_foreign_file_is_kept_and_comes_back():
    files = variables_of("direct_server")["__direct_server_files"]
    kept = [item["path"] for item in files if item.get("keep")]
    (removal,) = [task[FILES] for task in tasks("direct_server", "remove.yml") if FILES in task]
    assert kept == removal["put_back"] == [item["path"] for item in removal["files"]]


def test_the_templates_have_the_marks_of_this_collection():
    for template in (ROLES / "direct_server" / "templates").iterdir():
        assert template.read_text().startswith("# Managed by Ansible, onprem.lb.direct_server.")
