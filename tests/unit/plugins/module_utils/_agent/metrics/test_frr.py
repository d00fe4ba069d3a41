# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus is told of the sessions of FRR, and of the VIPs that a router has."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import frr
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics.sessions import BFD, SUMMARY

UP = {"state": "Established", "peerUptimeMsec": 4000, "pfxSnt": 2, "connectionsDropped": 3}
SESSIONS = {
    "ipv4Unicast": {"peers": {"192.0.2.1": UP, "192.0.2.2": {"state": "Active"}}},
    "ipv6Unicast": {"peers": {"2001:db8::1": {"state": "Idle"}}},
}
WATCHED = [{"peer": "192.0.2.1", "status": "up"}, {"peer": "192.0.2.2", "status": "down"}]
GATE = {"vips": [{"name": "front", "address": "192.0.2.10"}, {"name": "six", "address": "2001:DB8::10"}]}
FRONT = 'onprem_lb_bgp_announced{vip="front",address="192.0.2.10/32",family="ipv4"}'
SIX = 'onprem_lb_bgp_announced{vip="six",address="2001:db8::10/128",family="ipv6"}'


USUAL = {"summary": SESSIONS, "watched": WATCHED, "gate": GATE, "here": ["127.0.0.1", "192.0.2.10", "2001:db8::10"]}


def said(**given):
    """Return the lines of a host that is as usual but for what is given; None if FRR does not answer."""
    known = {**USUAL, **given}
    texts = {command: json.dumps(known[key]) for command, key in ((SUMMARY, "summary"), (BFD, "watched"))}
    answers = {command: None if text == "null" else text for command, text in texts.items()}
    gate = known["gate"] if isinstance(known["gate"], str) else json.dumps(known["gate"])
    found = frr.metrics(gate, answers.get, lambda _name: known["here"])
    return None if found is None else [line for line in found.splitlines() if not line.startswith("#")]


def test_each_session_and_each_vip_has_one_row():
    lines = said()
    assert [line for line in lines if "established" in line] == [
        'onprem_lb_bgp_session_established{peer="192.0.2.1",family="ipv4"} 1',
        'onprem_lb_bgp_session_established{peer="192.0.2.2",family="ipv4"} 0',
        'onprem_lb_bgp_session_established{peer="2001:db8::1",family="ipv6"} 0',
    ]
    assert [line for line in lines if "_bfd_up" in line] == [
        'onprem_lb_bgp_session_bfd_up{peer="192.0.2.1",family="ipv4"} 1',
        'onprem_lb_bgp_session_bfd_up{peer="192.0.2.2",family="ipv4"} 0',
    ]
    assert 'onprem_lb_bgp_session_sent{peer="192.0.2.1",family="ipv4"} 2' in lines
    assert 'onprem_lb_bgp_session_dropped_total{peer="192.0.2.1",family="ipv4"} 3' in lines
    assert len([line for line in lines if "_since_seconds" in line]) == 1, "the others never were established"
    assert [line for line in lines if "announced" in line] == [f"{FRONT} 1", f"{SIX} 0"]


@pytest.mark.parametrize("here, found", [(["192.0.2.10"], 1), (["127.0.0.1"], 0), ([], 0)])
def test_a_vip_is_announced_while_it_is_on_the_interface(here, found):
    assert f"{FRONT} {found}" in said(here=here)


@pytest.mark.parametrize("state, sent, found", [("Established", 1, 1), ("Established", 0, 0), ("Active", 1, 0)])
def test_and_while_a_session_of_its_family_has_it(state, sent, found):
    other = {"peers": {"2001:db8::1": {**UP, "pfxSnt": 1}}}
    own = {"peers": {"192.0.2.1": {"state": state, "pfxSnt": sent}}}
    assert f"{FRONT} {found}" in said(summary={"ipv4Unicast": own, "ipv6Unicast": other})


def test_the_gate_s_own_interface_is_read():
    asked = []
    frr.metrics(
        json.dumps({**GATE, "interface": "dummy0"}), lambda _command: "{}", lambda name: asked.append(name) or []
    )
    assert asked == ["dummy0"]


def test_frr_that_says_nothing_does_not_answer():
    assert said(summary=None) is None


def test_without_bfdd_or_an_instance_there_is_what_is_known():
    assert not any("_bfd_up" in line for line in said(watched=None))
    assert said(summary={}) == [f"{FRONT} 0", f"{SIX} 0"]


@pytest.mark.parametrize("gate", ["{", "[]", "{}", "5", '{"vips": 5}', '{"vips": [{"name": "a", "address": "b"}]}'])
def test_a_damaged_file_of_the_gate_hides_no_session(gate):
    lines = said(gate=gate)
    assert not any("announced" in line for line in lines) and any("established" in line for line in lines)


def test_an_interface_that_cannot_be_read_hides_no_session():
    def fails(_name):
        raise OSError("no")

    assert "session_established" in frr.metrics(json.dumps(GATE), lambda _command: json.dumps(SESSIONS), fails)


def test_the_loopback_s_own_addresses_are_known():
    assert "127.0.0.1" in frr.on_interface("lo") and frr.on_interface("none") == []


@pytest.mark.parametrize(
    "script, said", [("echo $2", "show bgp summary json\n"), ("exit 1", None), ("exec sleep 60", None)]
)
def test_what_vtysh_says_counts_and_one_that_hangs_is_left_alone(tmp_path, monkeypatch, script, said):
    (tmp_path / "vtysh").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "vtysh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(frr, "TIMEOUT", 0.5 if "sleep" in script else 60)
    assert frr.vtysh(SUMMARY) == said
    (tmp_path / "vtysh").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert frr.vtysh(SUMMARY) is None
