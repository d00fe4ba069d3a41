# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A router that replaces static pods is configured, and starts only when those are disabled."""

from __future__ import annotations

import pytest
from support.roles import calls, tasks, variables_of

SYSTEMD, POD, COMMAND = "ansible.builtin.systemd_service", "onprem.lb.static_pod", "ansible.builtin.command"
VIP = "192.0.2.10"
HOST = {
    "active_units": [],
    "enabled_units": [],
    "missing_packages": [],
    "restarting_units": [],
    "selinux": False,
    "takeover": {"keepalived": {"stop": False, "restart": False, "tables": []}},
}


@pytest.mark.parametrize("waits, states", [({}, ["started"]), ({"__keepalived_handed": {"waits": True}}, [])])
def test_keepalived_does_not_start_while_it_waits(waits, states):
    known = {
        "__keepalived_host": HOST,
        "__keepalived_written": {"changed": False},
        "__keepalived_stopped": {"changed": False},
        "ansible_check_mode": False,
        **waits,
    }
    found = calls("keepalived", known, SYSTEMD, tasks_from="configure.yml")
    assert [given["state"] for _module, given in found] == states


@pytest.mark.parametrize("waits, states", [({}, ["reloaded"]), ({"__keepalived_handed": {"waits": True}}, [])])
def test_a_handler_does_not_start_it_either(waits, states):
    known = {"ansible_check_mode": False, "__keepalived_host": HOST, **waits}
    found = calls("keepalived", known, SYSTEMD, tasks_from="../handlers/main.yml")
    assert [given["state"] for _module, given in found] == states


def called(name, *modules, check=False):
    """Return the calls on a member, where master1 waits and master2's router runs already."""
    variables = {
        **variables_of("layout"),
        "inventory_hostname": name,
        "ansible_check_mode": check,
        "__layout_plan": {"waiting": ["master1"], "vips": [{"address": VIP}]},
        "item": {"program": "kube-vip", "manifest": "/m/kube-vip.yaml"},
    }
    return calls("layout", variables, *modules, tasks_from="pods/static_pods.yml")


@pytest.mark.parametrize("name, removed", [("master1", [VIP]), ("master2", [])])
def test_the_vips_of_a_router_that_runs_already_are_not_removed(name, removed):
    ((_module, given),) = called(name, POD)
    assert given == {"manifest": "/m/kube-vip.yaml", "program": "kube-vip", "addresses": removed}


def test_a_router_that_has_waited_succeeds_the_pods_and_is_enabled_afterwards():
    found = called("master1", POD, SYSTEMD, COMMAND)
    assert [module for module, _given in found] == [SYSTEMD, POD, COMMAND, SYSTEMD]
    assert found[0][1] == {"daemon_reload": True} and found[2][1]["argv"][1] == "take-over"
    assert (found[3][1]["state"], found[3][1]["enabled"]) == ("started", True)


def test_no_other_router_is_touched_and_none_in_check_mode():
    assert called("master2", SYSTEMD, COMMAND) == []
    assert [given for _module, given in called("master1", SYSTEMD, check=True)] == [{"daemon_reload": True}]


def test_everything_else_is_in_place_before():
    names = [task["name"] for task in tasks("layout", "configure.yml")]
    pods = names.index("Configure | Disable static pods that hold VIPs")
    assert pods > names.index("Configure | Correct the balancer's down file")
    assert names[pods + 1 :] == ["Configure | Send a heartbeat before the members are verified"]
