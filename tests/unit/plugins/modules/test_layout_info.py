# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module layout_info: what is asked of it and said by it. What counts as a fault: test_verification."""

from __future__ import annotations

import json
import types

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, in_force
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.modules import layout_info
from support.modules import refusal, run
from support.programs import Programs

VIP = "192.0.2.10"
PLAN = {
    "vips": [{"address": VIP}],
    "services": [{"name": "web", "port": 443}],
    "targets": [[VIP, 443]],
    "units": ["haproxy.service", "keepalived.service"],
    "programs": ["haproxy"],
}
HELD = [{"ifname": "eth0", "address": "02:00:00:00:00:01", "addr_info": [{"local": VIP, "prefixlen": 32}]}]
NONE = [{**HELD[0], "addr_info": []}]
NO_HOLDER = f"VIP {VIP} has 0 holders as seen from here, exactly one is right."


class Host(Programs):
    """A member of the pair; ``looks`` are what `ip` says, one after the other, the last for ever."""

    def __init__(self, *looks):
        self.looks = list(looks)
        super().__init__({"ip": self._ip, "systemctl": "ActiveState=active\n"})

    def _ip(self, _words):
        return 0, json.dumps(self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]), ""


@pytest.fixture(autouse=True)
def link(monkeypatch):
    """haproxy listens and answers; who else answers for a VIP is in the dictionary that this gives."""
    others = {}
    monkeypatch.setattr(Reader, "answering", lambda *_asked: others)
    monkeypatch.setattr(facts, "listeners", lambda: [{"port": 443, "program": "haproxy"}])
    monkeypatch.setattr(facts, "reachable", lambda targets, timeout: [f"{address} {port}" for address, port in targets])
    monkeypatch.setattr(in_force, "unloaded", lambda _unit, _daemon: "")
    monkeypatch.setattr(layout_info, "PAUSE", 0.001)
    return others


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({}, "missing required arguments: plan"),
        ({"plan": "lb1"}, "dictionary requested"),
        ({"plan": {}}, "plan lacks vips, services, targets: it is what a role of this collection plans for this host."),
        ({"plan": PLAN, "limit": "long"}, "argument 'limit' is of type str"),
        ({"plan": PLAN, "seconds": 1}, "module: seconds. Supported parameters include"),
    ],
)
def test_a_wrong_argument_is_named(given, sentence):
    assert sentence in refusal(layout_info, given)


@pytest.mark.parametrize("check", [True, False])
def test_a_pair_that_does_what_is_planned_has_no_fault_in_either_mode(check):
    found = run(layout_info, {"plan": PLAN}, Host(HELD), check=check)
    assert (found["faults"], found["msg"], found["holders"]) == ([], "", {VIP: 1})
    assert "changed" not in found


def test_a_pair_that_needs_a_moment_gets_it():
    found = run(layout_info, {"plan": PLAN, "limit": 60}, Host(NONE, NONE, HELD))
    assert (found["faults"], found["holders"]) == ([], {VIP: 1})


def test_what_lasts_beyond_the_limit_is_said():
    found = run(layout_info, {"plan": PLAN, "limit": 0}, Host(NONE))
    assert (found["faults"], found["msg"], found["holders"]) == ([NO_HOLDER], NO_HOLDER, {VIP: 0})


def test_two_holders_are_a_fault(link):
    link[VIP] = ["02:00:00:00:00:63"]
    found = run(layout_info, {"plan": PLAN, "limit": 0}, Host(HELD))
    assert (found["holders"], found["faults"]) == ({VIP: 2}, [NO_HOLDER.replace("0 holders", "2 holders")])


PEERED = {**PLAN, "peered": [["192.0.2.2", 10000], ["2001:db8::3", 10000]]}
WITHOUT_PEER = (
    "the peer at 192.0.2.2 port 10000 does not answer, so that the two haproxys share no stick tables: see whether "
    "that member runs, and open this port between the members."
)


@pytest.mark.parametrize("servers, said", [(True, [WITHOUT_PEER]), (False, [])])
def test_a_peer_that_a_firewall_shuts_out_is_named_at_the_end_and_is_no_fault(monkeypatch, servers, said):
    shut = "192.0.2.2 10000"
    every = facts.reachable
    monkeypatch.setattr(facts, "reachable", lambda targets, timeout: [x for x in every(targets, timeout) if x != shut])
    monkeypatch.setattr(layout_info.member, "unserved", lambda *_asked: [])
    found = run(layout_info, {"plan": PEERED, "servers": servers}, Host(HELD))
    assert (found["faults"], found["unserved"]) == ([], said)


FAILS = {"name": "storage", "command": "/usr/bin/false", "timeout": 60}
PASSES = {"name": "other", "command": "/usr/bin/true", "timeout": 60}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("failing", [{}, {"storage": "script storage failed", "other": "script other failed"}])
def test_checks_are_run_once_in_either_mode_and_compared_with_what_the_router_says(
    monkeypatch, tmp_path, check, failing
):
    daemon = in_force.InForce(True, failing=failing)
    monkeypatch.setattr(in_force, "read", lambda _reader, _unit: daemon)
    counts = {**PASSES, "name": "counts", "command": f"/bin/sh -c 'echo run >>{tmp_path}/runs'"}
    given = {"plan": PLAN, "checks": [FAILS, PASSES, counts], "limit": 60}
    found = run(layout_info, given, Host(NONE, NONE, HELD), check=check)
    assert found["checks"] == {
        "storage": {"fault": "fails with exit code 1", "before": failing.get("storage", "")},
        "other": {"fault": "", "before": ""},
        "counts": {"fault": "", "before": ""},
    }
    assert (tmp_path / "runs").read_text() == "run\n"


@pytest.mark.parametrize("key", ["settle", "judged"])
def test_what_shows_only_after_a_while_is_waited_for(monkeypatch, key):
    """As a check does that its router finds failing at the third run. What is seen before that is no verdict."""
    now = [0.0]

    class Clocked(Host):
        """Each look takes some seconds."""

        def _ip(self, words):
            now[0] += 2.5
            return super()._ip(words)

    monkeypatch.setattr(layout_info, "time", types.SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _s: None))
    found = run(layout_info, {"plan": {**PLAN, key: 60}, "limit": 0}, Clocked(*[HELD] * 20, NONE))
    assert found["faults"] == [NO_HOLDER]


def test_what_is_wrong_with_direct_return_is_said_at_the_end_and_is_no_fault(monkeypatch):
    monkeypatch.setattr(layout_info.member, "unserved", lambda _reader, _limit: [])
    monkeypatch.setattr(layout_info.beside, "direct_faults", lambda _reader: ["api/web2 does not answer."])
    found = run(layout_info, {"plan": PLAN, "servers": True}, Host(HELD))
    assert (found["unserved"], found["faults"]) == (["direct return: api/web2 does not answer."], [])


@pytest.mark.parametrize("asked", [True, False])
def test_services_without_a_server_are_said_if_asked_for_and_are_no_fault(monkeypatch, asked):
    monkeypatch.setattr(layout_info.member, "unserved", lambda _reader, _limit: ["No server of web is up."])
    found = run(layout_info, {"plan": PLAN, "servers": asked}, Host(HELD))
    assert (found["unserved"], found["faults"]) == (["No server of web is up."] if asked else [], [])
