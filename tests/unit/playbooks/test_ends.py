# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run names every path that it has deleted, as deleted, and what a new resolver has written."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.modules import resolv_conf
from support.recorded_hosts import (
    CLUSTER,
    CLUSTER_VARIABLES,
    PAIR,
    PAIR_VARIABLES,
    UNITS,
    deployment,
    host_info,
    running,
)
from support.recorded_plays import run
from support.scope import FULL

GATE = "onprem-lb-anycast.service"  # no run of a layout with VRRP finds it; a removal does
EVERY_UNIT = [
    *UNITS,
    *("onprem-lb-resolver.service", "onprem-lb-resolver-nodes.path", "onprem-lb-resolver-keeper.service"),
    "onprem-lb-follow.service",
    *("onprem-lb-direct.service", "onprem-lb-direct-server.service", "onprem-lb-metrics.service"),
    GATE,
    "onprem-lb-certificates.service",
]
PACKAGES = {"haproxy": "haproxy", "keepalived": "keepalived", "dnsmasq-base": "dnsmasq-base"}
NAMES = {
    "os_family": "Debian",
    "addresses": ["192.0.2.1"],
    "source": "192.0.2.1",
    "port_53": [],
    "resolved": True,
    "networkmanager": True,
    "resolved_config": "",
    "answering": {},
    "resolv_conf": {"text": "nameserver 192.0.2.53\n"},
    "upstreams": {},
    "resolved_before": {"deb.debian.org": ["192.0.2.80"]},
    "wrong": [],
    "faults": [],
    "config": "",
    "differences": [],
}

RESOLV_CONF = ["keep a copy of /etc/resolv.conf", "write /etc/resolv.conf"]


def host(call):
    """A member on which everything runs that this collection can set up."""
    own = [name for name in PACKAGES if name in call.given.get("packages", [])]
    there = [name for name in EVERY_UNIT if name != GATE] if "layout" in call.given else EVERY_UNIT
    units = {f"{what}_units": there for what in ("active", "existing", "enabled", "own")}
    asked = call.given.get("units", [])
    units["active_units"] = asked if len(asked) == 1 else there
    members = {each: [f"192.0.2.{at}"] for at, each in enumerate(("lb1", "lb2"), 1)} if call.on[0] == "l" else {}
    return running(call, **units, own_packages=own, recorded_packages=own, members=members)


def wrote(call):
    """What config_files says of files that differ, all of them."""
    gone = [each["path"] for each in call.given["files"] if each.get("state") == "absent"]
    written = [each["path"] for each in call.given["files"] if each.get("state") != "absent"]
    deleted = [*gone, *call.given.get("folders", [])]
    paths = [*written, *deleted]
    started = [each["name"] for each in call.given.get("units", []) if each.get("state", "started") == "started"]
    commands = [f"systemctl restart {name}" for name in started]
    return {
        "changed": bool(paths),
        "paths": paths,
        "deleted": deleted,
        "stale": [],
        "commands": commands,
        "unchecked": [],
    }


def deleting(call):
    gone = call.given.get("state") == "absent"
    return {"changed": gone, "path": call.given["path"], "state": call.given.get("state", "file")}


ANSWERS = {
    "host_info": host,
    "config_files": wrote,
    "component_info": NAMES,
    "file": deleting,
    "program": lambda call: {"changed": True, "paths": [call.given["path"]], "python": "/python3", "checksum": "0"},
    "resolv_conf": lambda call: {"changed": True, "kept": "", "steps": [resolv_conf.STEPS[call.given["state"]]]},
    "systemd_service": lambda call: {
        "changed": True,
        "status": {"ActiveState": "inactive"},
        **{key: call.given[key] for key in ("name", "state") if key in call.given},
    },
    "package": {"changed": True},
    "apt": {"changed": True},
    "command": {"changed": True, "stdout": "", "rc": 0},
    "member_pods": lambda call: {"changed": False, "pods": []},
    "nft_tables": {"changed": False, "not_in_force": []},
}


def played(playbook, check=False, groups=None, answers=None, **variables):
    usual = {**(CLUSTER_VARIABLES if groups is CLUSTER else PAIR_VARIABLES), "confirm": True}
    play = run(
        playbook, groups or PAIR, deployment(**{**ANSWERS, **(answers or {})}), check=check, **{**usual, **variables}
    )
    assert play.code == 0, play.faults()
    return play


def deleted(play, name, check):
    """Yield what the calls of modules have deleted on a host, but for what only was checked."""
    for call in play.of("config_files", "file"):
        if call.on == name and call.check is check and "packages.json" not in str(call.given):
            found = wrote(call)["deleted"] if call.module == "config_files" else [call.given["path"]]
            yield from found if call.module == "config_files" or call.given.get("state") == "absent" else []


RUNS = [
    ("pair", PAIR, {"pair_auth_pass": "Zq7Zq7Zq"}, False),
    ("pair", PAIR, {"pair_auth_pass": "Zq7Zq7Zq", "pair_state": "absent"}, True),
    ("ipi", CLUSTER, {}, True),
    ("ipi", CLUSTER, {"ipi_state": "absent"}, False),
]
OTHERS = [(*given, not check) for *given, check in RUNS]


@pytest.mark.parametrize("playbook, groups, variables, check", [*RUNS, *(OTHERS if FULL else ())])
def test_each_path_that_a_run_has_deleted_is_said_to_be(playbook, groups, variables, check):
    play = played(playbook, check, groups, **variables)
    for name in [name for group in groups.values() for name in group]:
        steps = play.facts[name]["__layout_outcome"]["steps"]
        said = {path for step in steps if step.startswith("delete ") for path in step[len("delete ") :].split(", ")}
        gone = [*deleted(play, name, check)]
        assert gone and {*gone} - said == set(), steps
        if not check:
            assert "put /etc/resolv.conf back" in steps and "remove" in str(steps) and "dnsmasq-base" in str(steps), (
                steps
            )


@pytest.mark.parametrize("dns, says", [({"ipi_dns": True}, True), ({}, False)])
def test_a_resolver_that_comes_is_named_with_its_packages_and_what_the_host_asks(dns, says):
    def fresh(call):
        return host_info(
            call.on, missing_packages=[each for each in PACKAGES if each in call.given.get("packages", [])]
        )

    names = {**NAMES, "resolved": False, "networkmanager": False}
    play = played("ipi", False, CLUSTER, {"host_info": waiting(fresh), "component_info": names}, **dns)
    for name in ("m1", "w1"):
        steps = play.facts[name]["__layout_outcome"]["steps"]
        units = ["onprem-lb-resolver.service", "onprem-lb-resolver-keeper.service"]
        written = [f"/etc/onprem-lb-resolver/{name}" for name in ("dnsmasq.conf", "upstreams", "keeper.json")]
        assert all((path in str(steps)) is says for path in [*written, *units]), steps
        assert [each for each in steps if "resolv.conf" in each.split()[-1]] == RESOLV_CONF * says, steps
        assert ("dnsmasq-base" in str(steps)) is says
        started = str([each for each in steps if each.startswith(("start ", "restart "))])
        assert all((unit in started) is says for unit in units), steps


def test_a_node_that_carries_no_vip_gets_no_packages():
    """Otherwise the run after its removal would install them again, and Debian starts HAProxy with its own file."""
    missing = ["keepalived", "haproxy", "psmisc"]
    fresh = waiting(lambda call: host_info(call.on, missing_packages=missing))
    masters = [*CLUSTER["ipi_masters"]]
    play = played("ipi", False, CLUSTER, {"host_info": fresh}, ipi_ingress_members=masters)
    assert [(call.on, call.given["name"]) for call in play.of("apt")] == [(name, missing) for name in masters]
    assert "install" not in str(play.facts["w1"]["__layout_outcome"]["steps"])


def waiting(fresh):
    """Answer a role that waits for its own program as on a host on which it runs."""

    def answer(call):
        waits = len(call.given.get("units", [])) == 1 and "packages" not in call.given
        return running(call) if waits else fresh(call)

    return answer
