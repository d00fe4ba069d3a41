# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom the firewall of a member lets in, by rulesets that nft would print, and without nft."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall import core
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.model import apply, wanted_openings
from ansible_collections.onprem.lb.plugins.module_utils._host.read import let_in
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.firewalls import FakeHost, FakeNft, FakeUfw, accepting, dropping

V4, V6, PEER = "192.0.2.10", "2001:db8::10", "192.0.2.2"
PORTS = {V4: [80, 443]}
KNOWS = {"closed": [], "open": [], "vrrp": [], "chain": "", "unknown": ""}


@pytest.fixture(autouse=True)
def no_iptables(tmp_path, monkeypatch):
    monkeypatch.setattr(let_in, "LEGACY", [str(tmp_path / "names")])
    monkeypatch.setattr(let_in, "KERNEL", str(tmp_path / "nf_tables"))
    return tmp_path


def instance(address=V4, peers=(PEER,), source="192.0.2.1"):
    return {"interface": "eth0", "addresses": [address], "source": source, "peers": list(peers)}


def reader(host=None, answer=None):
    run = (lambda _command: answer) if answer else lambda command: host.run(["nft", *command[1:]])
    return Reader(run, lambda name: f"/usr/sbin/{name}" if host or answer else None)


def read(host, *instances, ports=None):
    return let_in.read(reader(host), PORTS if ports is None else ports, instances or [instance()])


def opened(*ports, peers=(PEER,)):
    host = dropping()
    apply(core.plan(host, "auto", wanted_openings(ports, peers)).actions, host)
    return host


def test_what_a_run_has_opened_is_open_and_what_a_flush_closes_is_closed():
    assert read(opened(80, 443)) == {**KNOWS, "open": [[V4, 80], [V4, 443]]}
    closed = {"closed": [[V4, 80], [V4, 443]], "vrrp": [PEER], "chain": "inet filter input"}
    assert read(dropping()) == {**KNOWS, **closed}
    assert read(accepting()) == {**KNOWS, "open": [[V4, 80], [V4, 443]]}


def test_each_peer_and_each_family_is_asked_for_by_itself():
    found = read(opened(80, 443), instance(peers=[PEER, "192.0.2.3"]), instance(V6, (), "fe80::1"))
    assert found["vrrp"] == ["192.0.2.3", ""] and found["closed"] == []
    host = FakeNft({("ip6", "filter"): {"input": ("drop", [])}})
    found = read(host, instance(), instance(V6, ["2001:db8::2"], "192.0.2.1"), ports={V4: [80], V6: [80]})
    assert (found["closed"], found["open"], found["vrrp"]) == ([[V6, 80]], [[V4, 80]], ["2001:db8::2"])


def test_a_node_without_a_balancer_or_a_router_is_asked_for_what_it_has():
    assert read(dropping(), ports={})["vrrp"] == [PEER]
    assert let_in.read(reader(dropping()), {V4: [80]}, [])["closed"] == [[V4, 80]]
    assert let_in.read(reader(dropping()), {}, []) == KNOWS


def test_what_is_not_known_is_not_called_closed(no_iptables):
    assert let_in.read(reader(), PORTS, [instance()]) == KNOWS
    (no_iptables / "nf_tables").mkdir()
    assert let_in.read(reader(), PORTS, [instance()])["unknown"] == "nft is missing (package nftables)"
    denied = let_in.read(reader(answer=(1, "", "Operation not\npermitted")), PORTS, [instance()])
    assert denied == {**KNOWS, "unknown": "nft says: Operation not permitted"}
    assert let_in.read(reader(answer=(0, "table inet x", "")), PORTS, [])["unknown"].startswith("nft -j list ruleset ")
    (no_iptables / "names").write_text("filter\n")
    found = read(dropping())
    assert found["unknown"] == let_in.NOT_SHOWN and found["vrrp"] == [PEER]
    assert let_in.read(reader(), PORTS, [instance()]) == {**KNOWS, "unknown": let_in.NOT_SHOWN}


def test_of_ufw_it_is_known_what_this_collection_has_opened():
    """Its chains have rules of iptables, as those that it has recorded on a host."""
    xt = {"xt": {"type": "match", "name": "conntrack"}}
    ruled = FakeNft({("ip", "filter"): {"INPUT": ("drop", [[xt, {"accept": None}]])}})

    def asked(host, **given):
        both = {"nft": ruled, "ufw": host}
        run = Reader(lambda command: both[command[0]].run(command), lambda name: name if name in both else None)
        return let_in.read(run, PORTS, [instance(**given)])["unknown"]

    host = FakeUfw()
    assert asked(host) == let_in.NOT_SHOWN
    apply(core.plan(host, "ufw", wanted_openings([80, 443], [PEER])).actions, host)
    assert asked(host) == asked(host, peers=[]) == ""
    assert asked(host, peers=[PEER, "192.0.2.3"]) == asked(FakeHost()) == let_in.NOT_SHOWN
    apply(core.plan(host, "ufw", wanted_openings([80], [PEER])).actions, host)
    assert asked(host) == let_in.NOT_SHOWN


def test_clients_come_in_on_the_interface_of_the_vip_and_vrrp_on_its_own(monkeypatch):
    seen = []
    monkeypatch.setattr(let_in.passage, "refusing", lambda _rules, packet: seen.append(packet) or "")
    read(accepting(), {**instance(), "interface": "eth1", "carriers": {V4: "eth0"}})
    found = {(packet.source, packet.port, packet.interface) for packet in seen}
    assert found == {("", 80, "eth0"), ("", 443, "eth0"), (PEER, 0, "eth1")}
