# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run finds that is not in force, and when it has nothing to configure."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import wanted

FILE = {"path": "/etc/a.conf", "content": "text ü\n", "mode": "0640", "unit": "a.service"}
IN_FORCE = MappingProxyType({"checksum": wanted.sha256(FILE["content"]), "mode": "0640", "stale": []})


def host(found=IN_FORCE, **units):
    states = {"active_units": ["a.service"], "enabled_units": ["a.service"], "restarting_units": []}
    return {"files": {FILE["path"]: found} if found else {}, **states, **units}


def test_what_is_in_force_is_not_named():
    assert wanted.not_in_force([FILE], host(), ["a.service"]) == []


@pytest.mark.parametrize(
    "found",
    [
        None,  # the host was not asked for it
        {**IN_FORCE, "checksum": wanted.sha256("another text\n")},
        {**IN_FORCE, "checksum": "", "mode": ""},  # there is none
        {**IN_FORCE, "mode": "0644"},
        {**IN_FORCE, "stale": ["a.service has not loaded /etc/a.conf since it changed."]},
    ],
)
def test_a_file_that_differs_or_is_not_loaded_is_named(found):
    assert wanted.not_in_force([FILE], host(found)) == ["/etc/a.conf"]


def test_a_file_that_names_no_mode_has_that_of_config_files():
    plain = {key: value for key, value in FILE.items() if key != "mode"}
    assert wanted.not_in_force([plain], host({**IN_FORCE, "mode": "0644"})) == []
    assert wanted.not_in_force([plain], host()) == ["/etc/a.conf"]


def test_a_file_that_is_to_be_absent_is_named_while_it_is_there():
    absent = {**FILE, "state": "absent"}
    assert wanted.not_in_force([absent], host()) == ["/etc/a.conf"]
    assert wanted.not_in_force([absent], host({"checksum": "", "mode": "", "stale": []})) == []


def test_a_program_whose_content_the_host_compares_needs_its_mode_only():
    program = {"path": FILE["path"], "mode": "0640"}
    assert wanted.not_in_force([program], host()) == []
    assert wanted.not_in_force([program], host({**IN_FORCE, "stale": ["It is of another release."]})) == [FILE["path"]]


@pytest.mark.parametrize("units", [{"active_units": []}, {"enabled_units": []}, {"restarting_units": ["a.service"]}])
def test_a_unit_that_does_not_run_or_not_at_boot_or_starts_again_and_again_is_named(units):
    assert wanted.not_in_force([FILE], host(**units), ["a.service"]) == ["a.service"]


MEMBER = {"engine": "native", "replaces": ""}
PLAN = {
    "members": {"lb1": MEMBER},
    "departed": [],
    "migration_order": [],
    "joining": [],
    "waiting": [],
    "routers_together": False,
}
HOST = {"missing_packages": [], "held_back": {}, "selinux": False, "static_pods": []}


def test_a_member_on_which_nothing_differs_needs_no_configuration():
    assert wanted.is_in_force(PLAN, "lb1", HOST, [[], [], False])


def test_a_member_with_the_agent_needs_no_packages():
    plan = {**PLAN, "members": {"lb1": {**MEMBER, "engine": "agent"}}}
    assert wanted.is_in_force(plan, "lb1", {**HOST, "missing_packages": ["haproxy"]}, [])


@pytest.mark.parametrize(
    "plan, host, differing",
    [
        ({}, {}, [[], ["/etc/a.conf"]]),
        ({}, {}, [[], True]),
        ({"departed": [{"name": "lb3"}]}, {}, []),
        ({"migration_order": ["lb1"]}, {}, []),
        ({"joining": ["lb2"]}, {}, []),
        ({"waiting": ["lb2"]}, {}, []),
        ({"routers_together": True}, {}, []),
        ({"members": {"lb1": {**MEMBER, "replaces": "native"}}}, {}, []),
        ({}, {"missing_packages": ["haproxy"]}, []),
        ({}, {"held_back": {"by": "onprem.lb.maintenance"}}, []),
        ({}, {"selinux": True}, []),
        ({}, {"static_pods": [{"program": "kube-vip", "manifest": "/m/kube-vip.yaml"}]}, []),
    ],
)
def test_whatever_differs_or_is_not_compared_is_configured(plan, host, differing):
    assert not wanted.is_in_force({**PLAN, **plan}, "lb1", {**HOST, **host}, differing)
