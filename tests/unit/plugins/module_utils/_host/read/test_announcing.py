# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a member that announces its VIPs by BGP: with both engines, without a balancer, and part by part."""

from __future__ import annotations

import copy
import json
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import (
    announcing,
    bgp,
    facts,
    held_back,
    in_force,
    member,
)
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths
from support.programs import Programs

VIP, SIX = "203.0.113.10", "2001:db8::10"
GATE, FRR = "onprem-lb-anycast.service", "frr.service"
BALANCERS = {"native": "haproxy.service", "agent": "onprem-lb-proxy.service", "": ""}
ESTABLISHED = {"remoteAs": 64601, "state": "Established", "peerUptimeMsec": 60500, "pfxSnt": 1}
SUMMARY = {
    "ipv4Unicast": {"peers": {"192.0.2.1": ESTABLISHED, "192.0.2.2": {"remoteAs": 64602, "state": "Active"}}},
}
BFD = [{"peer": "192.0.2.1", "status": "up"}]
CHECKS = [
    {"name": "haproxy_down", "type": "file", "up": True, "detail": ""},
    {"name": "haproxy_answers", "type": "http", "up": True, "detail": ""},
]


class Host:
    """A member; its attributes are what a test changes."""

    def __init__(self, folder, engine):
        self.engine, self.down, self.config = engine, folder / "down", folder / "anycast.json"
        self.down.write_text("0\n")
        self.stopped = set()
        self.on_loopback = ["127.0.0.1", VIP, "::1"]
        self.said = {"show bgp summary json": json.dumps(SUMMARY), "show bfd peers json": json.dumps(BFD)}
        self.said.update({"show version": "FRRouting 8.4.4 (lb1) on Linux\n", "show running-config": "router bgp 1\n"})
        self.refused = ()
        tracked = ["haproxy_down", "haproxy_answers"]
        vips = [{"name": f"vip-{vip}", "address": vip, "track": tracked} for vip in (VIP, SIX)]
        file = {"name": "haproxy_down", "type": "file", "file": str(self.down)}
        self.config.write_text(json.dumps({"vips": vips, "checks": [file]}))
        self.gate = {
            "config_fault": None,
            "limits": [],
            "vips": [self._said(VIP, True), self._said(SIX, False)],
            "checks": copy.deepcopy(CHECKS),
        }

    @staticmethod
    def _said(vip, held):
        prefix = 128 if ":" in vip else 32
        since = time.time() - 60.5
        more = {"reason": "serves" if held else "not_known", "detail": "" if held else "not known: haproxy_answers"}
        return {"address": f"{vip}/{prefix}", "held": held, "since": since, "elsewhere": [], **more}

    def is_ours(self, unit):
        return unit in (GATE, BALANCERS[self.engine])

    def _ip(self, _words):
        links = [("lo", self.on_loopback, ""), ("eth0", ["192.0.2.11"], "02:00:00:00:00:01")]
        return 0, json.dumps([self._link(*link) for link in links]), ""

    @staticmethod
    def _link(name, addresses, mac):
        infos = [{"local": each, "prefixlen": 128 if ":" in each else 32} for each in addresses]
        return {"ifname": name, "address": mac, "addr_info": infos}

    def _systemctl(self, words):
        units = [word for word in words if word.endswith(".service")]
        shown = [f"Id={unit}\nActiveState={'inactive' if unit in self.stopped else 'active'}\n" for unit in units]
        return 0, "\n".join(shown), ""

    def _vtysh(self, words):
        command = words[-1]
        return self.refused or (0, self.said[command], "")

    def read(self, *vips, **others):
        programs = Programs(
            {
                "ip": self._ip,
                "systemctl": self._systemctl,
                "timeout": self._vtysh,
                "vtysh": "",
                "haproxy": "HAProxy version 2.6.12-1+deb12u1 2023/12/16 - https://haproxy.org/\n",
                "keepalived": (0, "", "Keepalived v2.2.7 (01/16,2022)\n"),
            }
        )
        return member.read(Reader(programs.run, programs.find), vips, **others)


@pytest.fixture(params=["native", "agent", ""])
def engine(request):
    return request.param


@pytest.fixture
def host(tmp_path, monkeypatch, engine):
    made = Host(tmp_path, engine)
    reports = {
        "onprem-lb-anycast": lambda: made.gate,
        "onprem-lb-direct": dict,
        "onprem-lb-proxy": lambda: {"version": "1.0.0", "services": [{"name": "web", "servers": []}]},
    }
    monkeypatch.setattr(paths, "GATE_CONFIG", str(made.config))
    monkeypatch.setattr(facts, "is_ours", made.is_ours)
    monkeypatch.setattr(facts, "listeners", list)
    monkeypatch.setattr(in_force, "unloaded", lambda _unit, _daemon: "")
    monkeypatch.setattr(in_force, "report_of", lambda daemon: reports[daemon.program]())
    monkeypatch.setattr(Reader, "answering", lambda _self, vips, _wait, _addresses: {})
    records = {during: str(tmp_path / f"{during}.json") for during in ("switchover", "maintenance")}
    monkeypatch.setattr(held_back.in_force, "__defaults__", (records,))
    monkeypatch.setattr(member, "CONFIGS", dict.fromkeys(member.CONFIGS, str(tmp_path / "none")))
    return made


def test_a_member_that_announces_is_described_the_same_with_both_engines_and_without_a_balancer(host, engine):
    found = host.read("192.0.2.99")
    assert (found["engine"], found["router"], found["balancer"]) == (engine, "", BALANCERS[engine])
    assert (found["unable"], found["instances"], found["held_back"]) == ([], [], {})
    assert found["held"] == [{"address": VIP, "seconds": 60}]
    assert found["versions"] == {
        "native": {"haproxy": "2.6.12", "frr": "8.4.4"},
        "agent": {"agent": "1.0.0", "frr": "8.4.4"},
        "": {"frr": "8.4.4"},
    }.get(engine)
    assert found["resigns_when_killed"], "keepalived is none of its programs"


def test_what_it_announces(host):
    assert host.read()["announcing"] == {
        "vips": [
            {"address": VIP, "reason": "serves", "detail": "", "elsewhere": []},
            {"address": SIX, "reason": "not_known", "detail": "not known: haproxy_answers", "elsewhere": []},
        ],
        "sessions": [
            {
                "peer": "192.0.2.1",
                "asn": 64601,
                "family": "ipv4",
                "state": "Established",
                "sent": 1,
                "bfd": "up",
                "seconds": 60,
                "announces": True,
            },
            {
                "peer": "192.0.2.2",
                "asn": 64602,
                "family": "ipv4",
                "state": "Active",
                "sent": 0,
                "bfd": "",
                "seconds": None,
                "announces": False,
            },
        ],
        "asn": 1,
        "connections": 0,
        "direct": [],
        "drained": False,
        "silent": "",
        "sessions_known": True,
        "problems": [],
    }


@pytest.mark.parametrize("indent", ["", " "])
def test_one_that_is_drained_says_so(host, indent):
    host.said["show running-config"] = f"router bgp 64512\n{indent}bgp graceful-shutdown\n"
    assert host.read()["announcing"]["drained"]
    host.said["show running-config"] = f"router bgp 64512\n{indent}no bgp graceful-shutdown\n"
    assert not host.read()["announcing"]["drained"]


@pytest.mark.parametrize(
    "refused, is_known",
    [
        ((1, "", "bgpd is not running\n"), True),
        ((1, "", "Exiting: failed to connect to any daemons.\n"), True),
        ((124, "", ""), False),
    ],
)
def test_a_bgpd_that_does_not_run_has_no_session_and_of_one_that_hangs_nobody_knows(host, refused, is_known):
    host.refused = refused
    found = host.read()
    assert found["announcing"]["silent"].startswith("FRR does not answer")
    assert (found["announcing"]["sessions"], found["announcing"]["sessions_known"]) == ([], is_known)
    assert found["held"] == [{"address": VIP, "seconds": 60}] and "frr" not in found["versions"]


def test_where_direct_return_keeps_connections(host, monkeypatch, tmp_path):
    config = tmp_path / "direct.json"
    monkeypatch.setattr(paths, "PLANE_CONFIG", str(config))
    services = [{"name": "web", "bind": [VIP, SIX], "port": 443}, {"bind": [VIP]}, {"port": 80}]
    config.write_text(json.dumps({"services": services}))
    assert host.read()["announcing"]["direct"] == [], "the plane is not set up here"
    usual = facts.is_ours
    monkeypatch.setattr(facts, "is_ours", lambda unit: unit == paths.PLANE or usual(unit))
    assert host.read()["announcing"]["direct"] == [(VIP, 443), (SIX, 443)]
    config.write_text("{")
    assert host.read()["announcing"]["direct"] == []


@pytest.mark.parametrize("left, looks", [([0], 1), ([3, 2, 0], 3), ([1] * 99, 6)], ids=["none", "some", "lasting"])
def test_connections_are_waited_for_until_there_are_none_or_the_limit(host, monkeypatch, left, looks):
    clock, seen, counts = [0.0], [], iter(left)

    def connections(vips):
        seen.append(vips)
        return next(counts)

    monkeypatch.setattr(facts, "connections", connections)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    announcing.wait_for_connections(Reader(None, None), 2.5)
    assert seen == [[VIP, SIX]] * looks and clock[0] <= 2.5


def test_its_own_as_number_is_that_of_its_bgp(host):
    for text, number in (("router bgp 4200000000\n bgp router-id 1.2.3.4\n", 4200000000), ("hostname lb1\n", 0)):
        host.said["show running-config"] = text
        assert host.read()["announcing"]["asn"] == number


def test_without_vtysh_there_is_no_session(host, monkeypatch):
    monkeypatch.setattr(bgp, "VTYSH", "none")
    found = host.read()["announcing"]
    assert found["silent"].startswith("FRR is not installed") and found["sessions_known"]


def test_each_unit_that_does_not_run_is_a_reason(host, engine):
    host.stopped = {*BALANCERS.values(), FRR, GATE}
    units = [*filter(None, [BALANCERS[engine]]), FRR, GATE]
    assert [why for why in host.read()["unable"] if "does not run" in why] == [
        f"{unit} does not run." for unit in units
    ]


def test_why_its_checks_fail_is_said_once(host):
    host.down.write_text("1\n")
    for check in host.gate["checks"]:
        check.update(up=False, detail="status 503")
    assert host.read()["unable"] == [
        f"{host.down} says 1, that the balancer is down.",
        "The check haproxy_answers fails: status 503.",
    ]


def test_a_gate_that_does_not_answer_hides_neither_vips_nor_down_files(host):
    host.gate = {}
    host.down.write_text("1\n")
    found = host.read()
    assert found["held"] == [{"address": VIP, "seconds": None}]
    assert found["unable"] == [f"{host.down} says 1, that the balancer is down."]
    assert [each["reason"] for each in found["announcing"]["vips"]] == ["", ""]


def test_a_damaged_file_of_the_gate_has_no_vips(host):
    host.config.write_text("{")
    host.gate = {}
    assert host.read()["announcing"]["vips"] == []
    assert host.read(VIP)["held"] == [{"address": VIP, "seconds": None}]


def test_a_gate_of_another_version_says_what_it_can(host):
    for vip in host.gate["vips"]:
        del vip["since"], vip["held"], vip["elsewhere"]
    host.gate["vips"].append({"name": "odd"})
    host.config.write_text(json.dumps({**json.loads(host.config.read_text()), "checks": [{"type": "file"}]}))
    found = host.read()
    assert found["held"] == [{"address": VIP, "seconds": None}] and found["unable"] == []
    assert [each["reason"] for each in found["announcing"]["vips"]] == ["serves", "not_known"]


def test_what_is_on_another_interface_is_not_announced(host):
    host.on_loopback = ["127.0.0.1"]
    host.gate["vips"][0].update(held=False, elsewhere=["eth0"])
    found = host.read()
    assert found["held"] == [] and found["announcing"]["vips"][0]["elsewhere"] == ["eth0"]


def test_a_member_with_vrrp_announces_nothing(host, monkeypatch):
    monkeypatch.setattr(facts, "is_ours", lambda unit: unit == "haproxy.service")
    assert host.read()["announcing"] == {} and not announcing.is_here()
