# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's frr.conf in this machine's FRR: what it announces, what it accepts, and which sessions a load ends."""

from __future__ import annotations

import contextlib
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import bgp
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files, units
from ansible_collections.onprem.lb.plugins.module_utils._host.write import frr as _frr
from support.netns.links import sh, temporary_link
from support.netns.speakers import RELOADER, Member, Speaker, speakers
from support.rendering import frr
from support.scope import FULL
from support.waiting import stays, until

pytestmark = pytest.mark.skipif(not RELOADER, reason="not installed: frr-reload.py")

ASN, ROUTER_ASN = 64512, 64601
OWN = ("192.0.2.1", "2001:db8::1")  # of the member, which is lb1
ROUTER, ROUTER6, SECOND = "192.0.2.3", "2001:db8::3", "192.0.2.2"
VIP, OTHER_VIP, VIP6 = "198.51.100.10", "198.51.100.11", "2001:db8:1::10"
NEW = "192.0.2.77"  # a peer that is not there
NO_VIP, NO_VIP6 = "198.51.100.99", "2001:db8:1::99"
PEERS = [{"address": each, "asn": ROUTER_ASN} for each in (ROUTER, ROUTER6, SECOND)]
GIVEN = {"asn": ASN, "peers": PEERS, "prefixes": [VIP, VIP6]}
# Of a router: everything that a neighbour sends is taken, so that what it has is what the member announces.
OPEN = f"""
router bgp {ROUTER_ASN}
 bgp router-id {{id}}
 no bgp ebgp-requires-policy
 neighbor {OWN[0]} remote-as {ASN}
 neighbor {OWN[0]} timers connect 1
 neighbor {OWN[1]} remote-as {ASN}
 neighbor {OWN[1]} timers connect 1
 {{more}}
 address-family ipv6 unicast
  neighbor {OWN[1]} activate
 exit-address-family
exit
"""


def host_route(address):
    return f"{address}/{128 if ':' in address else 32}"


def lo(node, verb, *addresses):
    for address in addresses:
        node.ip(
            "addr", verb, host_route(address), "dev", "lo", *(["nodad"] if ":" in address and verb == "add" else [])
        )


def changed(at=0, **settings):
    """The settings with another peer in one place."""
    return {**GIVEN, "peers": [{**peer, **(settings if each == at else {})} for each, peer in enumerate(PEERS)]}


def text(**settings):
    return frr(OWN, **{**GIVEN, **settings})


class Network:
    def __init__(self, link, member, router, second):
        self.link, self.member, self.router, self.second = link, member, router, second

    def seen(self):
        return {*self.router.paths("ipv4"), *self.router.paths("ipv6")}

    def settle(self):
        until(lambda: self.member.are_up(ROUTER, ROUTER6, SECOND), lambda: f"{self.member.sessions()}")


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with temporary_link() as link:
        member, router, second = link.lb1, link.client, link.lb2
        etc = tmp_path_factory.mktemp("etc")
        starting = [lambda: Member(member, etc), lambda: Speaker(router), lambda: Speaker(second)]
        with speakers(*starting) as [speaks, *routers]:
            for address, each in zip((ROUTER, SECOND), routers):
                each.configure(OPEN.format(id=address, more=""))
            yield Network(link, speaks, *routers)


@pytest.fixture
def network(started):
    """Three sessions, and no address on lo."""
    started.member.load(text())
    started.settle()
    yield started
    lo(started.link.lb1, "del", *(each for each in (VIP, OTHER_VIP, VIP6, NO_VIP, NO_VIP6) if on_lo(started, each)))
    until(lambda: started.seen() == set())


def on_lo(network, address):
    return f" {host_route(address)} " in network.link.lb1.output("ip", "addr", "show", "dev", "lo").replace(
        f"{address} ", f"{host_route(address)} "
    )


def test_a_vip_stays_announced_when_the_router_of_vrrp_loses_it_if_frr_has_seen_it_on_lo_first(network):
    """zebra of FRR 8.4 drops the one that it saw last, whichever goes. So FRR starts once the VIP is on lo."""
    lo(network.link.lb1, "add", VIP)
    until(lambda: network.seen() == {host_route(VIP)})
    network.link.lb1.ip("addr", "add", host_route(VIP), "dev", "eth0")
    stays(lambda: network.seen() == {host_route(VIP)}, 1)
    network.link.lb1.ip("addr", "del", host_route(VIP), "dev", "eth0")
    stays(lambda: network.seen() == {host_route(VIP)}, 1)


def test_a_vip_is_announced_while_it_is_on_lo_and_nothing_else_ever_is(network):
    lo(network.link.lb1, "add", NO_VIP, NO_VIP6, VIP, VIP6)
    until(lambda: network.seen() == {host_route(VIP), host_route(VIP6)})
    stays(lambda: network.seen() == {host_route(VIP), host_route(VIP6)}, 1)
    lo(network.link.lb1, "del", VIP)
    until(lambda: network.seen() == {host_route(VIP6)})
    lo(network.link.lb1, "del", VIP6)
    until(lambda: network.seen() == set())


def test_a_vip_that_is_not_on_lo_is_not_announced(network):
    """It may be the one of a VRRP router on this host, of whose checks the address on lo knows nothing."""
    network.link.lb1.ip("addr", "add", host_route(VIP), "dev", "eth0")
    try:
        lo(network.link.lb1, "add", VIP6)
        until(lambda: network.seen() == {host_route(VIP6)})
        stays(lambda: network.seen() == {host_route(VIP6)}, 1)
    finally:
        network.link.lb1.ip("addr", "del", host_route(VIP), "dev", "eth0")


def test_of_a_full_table_nothing_is_accepted(network):
    table = ["0.0.0.0/0", host_route(VIP), *(f"10.{at // 256}.{at % 256}.0/24" for at in range(2000))]
    announces = f"router bgp {ROUTER_ASN}\n no bgp network import-check\n address-family ipv4 unicast\n{{}}\nexit\n"
    networks = "\n".join(f"  network {each}" for each in table)
    network.router.configure(announces.format(networks))
    try:
        until(lambda: network.router.summary()[OWN[0]]["pfxSnt"] == len(table), network.router.summary)
        stays(lambda: network.member.paths("ipv4") == {}, 1)
        assert "proto bgp" not in network.link.lb1.output("ip", "route", "show", "table", "all")
        assert {each.accepted for each in bgp.sessions(network.member.frr.reader)} == {0}
    finally:
        network.router.configure(announces.format(networks.replace("network", "no network")))


# What each change of the settings does: it says which sessions it ends, and they are those that end.
OF_ALL = ["router ID"]
ENDS = {
    "hops": [ROUTER],
    "a local address": [ROUTER],
    "the second peer's hops": [SECOND],
    "the IPv6 peer's hops": [ROUTER6],
    "a peer more": [NEW],  # which goes again
    "BFD": [SECOND],
}
CHANGES = {
    "nothing": GIVEN,
    "a VIP more": {**GIVEN, "prefixes": [VIP, OTHER_VIP, VIP6]},
    "a VIP less": {**GIVEN, "prefixes": [VIP6]},
    "communities": {**GIVEN, "communities": ["64512:100", "64512:1:2", "no-export"]},
    "those of a peer": changed(communities=["64512:7"]),
    "a graceful shutdown": {**GIVEN, "graceful_shutdown": True},
    "BFD's interval": {**GIVEN, "bfd": {"interval": 300, "multiplier": 5}},
    "a peer more": {**GIVEN, "peers": [*PEERS, {"address": NEW, "asn": 64700, "bfd": True}]},
    "a peer less": {**GIVEN, "peers": PEERS[:2]},
    "other peers first": {**GIVEN, "peers": PEERS[::-1]},
    "hold time": changed(hold_time=30, keepalive_time=7),
    "connect time": changed(connect_time=2),
    "hops": changed(multihop=3),
    "a local address": changed(local_address=OWN[0]),
    "the second peer's hops": changed(2, multihop=3),
    "the IPv6 peer's hops": changed(1, multihop=3),
    "BFD": changed(2, bfd=True),
    "raw lines": {**GIVEN, "extra_lines": ["ip prefix-list mine seq 5 permit 10.0.0.0/8"]},
    "router ID": {**GIVEN, "router_id": "192.0.2.200"},
}


@contextlib.contextmanager
def routes_of(node, path):
    """Have each change of a node's routes written to a file, between a first and a last route of our own."""

    def is_written(route):
        node.ip("route", "replace", "unreachable", route)
        node.ip("route", "del", "unreachable", route)
        return route in path.read_text()

    watch = ["ip", "-n", node.namespace, "monitor", "route"]
    with path.open("w") as file, subprocess.Popen(watch, stdout=file) as monitor:
        try:
            until(lambda: is_written("203.0.113.1"))
            yield path
            until(lambda: is_written("203.0.113.2"))
        finally:
            monitor.terminate()


FEW = ("a peer more", "BFD", "router ID")
STAYS = ("a VIP more", "a graceful shutdown", "communities", "a peer more", "other peers first")


@pytest.mark.parametrize("name", CHANGES if FULL else FEW)
def test_a_load_ends_no_session_but_those_that_it_names_and_can_be_taken_back(network, name):
    lo(network.link.lb1, "add", VIP6)
    until(lambda: network.seen() == {host_route(VIP6)})
    for wanted in (frr(OWN, **CHANGES[name]), text()):
        before = network.member.sessions()
        planned = network.member.load(wanted)
        assert network.member.planned(wanted).changes is False, "the second run of a role changes nothing"
        network.router.say("show bgp summary")  # a round trip
        kept = {peer: known for peer, known in before.items() if peer not in planned.resets}
        after = network.member.sessions()
        assert {peer: after.get(peer) for peer in kept} == kept
        until(
            lambda: all(
                state == "Established" or peer == NEW for peer, (state, _n) in network.member.sessions().items()
            )
        )
        assert {peer: network.member.sessions().get(peer) for peer in kept} == kept
    assert planned.resets == (sorted([ROUTER, ROUTER6, SECOND]) if name in OF_ALL else ENDS.get(name, []))


@pytest.mark.parametrize("name", STAYS if FULL else STAYS[:2])
def test_a_vip_that_stays_is_not_withdrawn_meanwhile(network, tmp_path, name):
    lo(network.link.lb1, "add", VIP, VIP6)
    until(lambda: network.seen() == {host_route(VIP), host_route(VIP6)})

    def routes():
        return network.link.client.output("ip", "route", "show", host_route(VIP))

    until(lambda: "proto bgp" in routes())
    with routes_of(network.link.client, tmp_path / "routes") as seen:
        network.member.load(frr(OWN, **CHANGES[name]))
        network.member.load(text())
        network.settle()
        until(lambda: "proto bgp" in routes())
        lo(network.link.lb1, "del", VIP)  # the one that is to be seen
        until(lambda: "proto bgp" not in routes())
    gone = [line for line in seen.read_text().splitlines() if line.startswith("Deleted") and VIP in line]
    assert len(gone) == 1


def test_a_load_does_not_make_a_router_of_a_host(network):
    network.link.lb1.set_forwarding(False)
    network.member.load(frr(OWN, **CHANGES["communities"]))
    for name in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        assert network.link.lb1.output("sysctl", "-n", name).strip() == "0"


def test_a_file_that_frr_refuses_changes_nothing(network):
    before, running = network.member.path.read_text(), network.member.frr.running()
    with pytest.raises(files.Refused, match="vtysh refuses the new .*line 1"):
        network.member.load(text().replace("frr defaults", "frr defauts").replace("# Managed", "x# Managed"))
    assert (network.member.path.read_text(), network.member.frr.running()) == (before, running)


def test_frr_returns_to_what_it_ran_if_it_does_not_come_to_run_a_file(network, monkeypatch):
    monkeypatch.setattr(_frr, "SETTLE_LIMIT", 1)  # for what never comes
    before, sessions = network.member.path.read_text(), network.member.sessions()
    never = text(communities=["64512:5"]).replace("transmit-interval 50", "transmit-interval 50\n  detect-multiplier 3")
    with pytest.raises(units.Failed, match="it lacks bfd / profile onprem / detect-multiplier 3"):
        network.member.load(never)
    assert network.member.path.read_text() == before and network.member.sessions() == sessions
    assert network.member.planned(text()).changes is False


def test_a_session_with_a_password_is_there_with_the_same_one_only(network):
    secret = {"password": "s3cr?t!#%"}
    network.member.load(frr(OWN, **changed(2, **secret)))
    until(lambda: not network.member.are_up(SECOND))
    lines = f"router bgp {ROUTER_ASN}\n {{}}neighbor {OWN[0]} password {secret['password']}\nexit\n"
    network.second.configure(lines.format(""))
    until(lambda: network.member.are_up(SECOND))
    assert network.member.planned(frr(OWN, **changed(2, **secret))).changes is False
    network.second.configure(lines.format("no "))
    until(lambda: not network.member.are_up(SECOND))
    assert network.member.are_up(ROUTER, ROUTER6)


def test_the_sessions_are_read(network):
    lo(network.link.lb1, "add", VIP)
    until(lambda: network.seen() == {host_route(VIP)})
    found = {each.peer: each for each in bgp.sessions(network.member.frr.reader)}
    assert set(found) == {ROUTER, ROUTER6, SECOND}
    first, sixth = found[ROUTER], found[ROUTER6]
    assert (first.asn, first.family, first.state, first.sent, first.bfd) == (ROUTER_ASN, "ipv4", "Established", 1, "")
    assert (sixth.family, sixth.sent, sixth.since is not None) == ("ipv6", 0, True)


def test_bfd_watches_a_session_and_routers_are_told_of_a_graceful_shutdown(network):
    network.second.configure(f"router bgp {ROUTER_ASN}\n neighbor {OWN[0]} bfd\nexit\n")
    network.member.load(frr(OWN, **{**changed(2, bfd=True), "graceful_shutdown": True, "communities": ["64512:9"]}))

    def state():
        return {each.peer: each.bfd for each in bgp.sessions(network.member.frr.reader)}

    until(lambda: state() == {ROUTER: "", ROUTER6: "", SECOND: "up"}, state)
    lo(network.link.lb1, "add", VIP)
    until(lambda: network.seen() == {host_route(VIP)})
    until(lambda: "graceful-shutdown" in network.router.say(f"show bgp ipv4 unicast {VIP} json"))
    assert "64512:9" in network.router.say(f"show bgp ipv4 unicast {VIP} json")
    network.second.configure(f"router bgp {ROUTER_ASN}\n no neighbor {OWN[0]} bfd\nexit\n")


def test_what_a_killed_bgpd_has_announced_is_forgotten(network):
    lo(network.link.lb1, "add", VIP)
    until(lambda: network.seen() == {host_route(VIP)})
    network.member.kill("bgpd")
    until(lambda: network.seen() == set())
    until(lambda: "proto bgp" not in sh("ip", "-n", network.link.client.namespace, "route", "show"))
    network.member.running["bgpd"] = network.member.spawn("bgpd")
    until((network.member.folder / "bgpd.vty").exists)
