# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which peers are told that keepalived has yielded, and what. On a link: tests/netns/test_drill_events.py."""

from __future__ import annotations

import functools
import itertools
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf, peers, senders
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import netlink
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet

MAC = "02:00:00:00:00:01"
SHOWN = """\
192.0.2.1 FAILED
192.0.2.2 lladdr 02:00:00:00:00:02 REACHABLE
192.0.2.3 INCOMPLETE
192.0.2.4 lladdr 02:00:00:00:00:04 STALE
192.0.2.9 FAILED
2001:db8::5 FAILED
"""
CONFIG = """\
vrrp_instance web {
    interface eth0
    virtual_router_id 51
    priority 253
    advert_int 1
    authentication {
        auth_type PASS
        auth_pass 0f3a9c1e
    }
    unicast_src_ip 192.0.2.2
    unicast_peer {
        192.0.2.1
        192.0.2.3
    }
    virtual_ipaddress {
        192.0.2.10/32
    }
}
vrrp_instance other {
    interface eth0
    virtual_router_id 52
    unicast_peer {
        192.0.2.3
    }
    virtual_ipaddress {
        192.0.2.11/32
    }
}
"""


class Prober:
    """The neighbours that answer, each at one of our questions."""

    def __init__(self, **answers_at):
        self.answers_at = {name.replace("_", "."): turn for name, turn in answers_at.items()}
        self.asked, self.waiting = [], []

    def probe(self, address):
        self.asked.append(address)
        if self.asked.count(address) == self.answers_at.get(f"n{address}"):
            self.waiting.append((address, MAC))

    def replies(self):
        found, self.waiting = self.waiting, []
        return [*found, ("192.0.2.77", "02:00:00:00:00:77")]  # somebody else speaks


def find(prober, *wanted):
    return peers.find(prober, wanted, lambda prober, _seconds: bool(prober.waiting))


def with_peers(named):
    """Return a router of the peers' family."""
    return conf.routers(CONFIG)[0]._replace(peers=tuple(named), advertised=tuple(named))


@pytest.mark.parametrize(
    "named, lost",
    [
        (["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"], ["192.0.2.1", "192.0.2.3"]),
        (["2001:DB8:0::5"], ["2001:db8::5"]),
        (["192.0.2.2"], []),
    ],
)
def test_a_peer_is_lost_if_the_kernel_has_asked_for_it_in_vain(named, lost):
    assert peers.unknown(SHOWN, with_peers(named)).peers == lost


@pytest.mark.parametrize(
    "named, others",
    [(["192.0.2.1"], ["192.0.2.3"]), (["192.0.2.3"], []), (["2001:db8::1"], ["2001:db8::6"])],
)
def test_others_are_asked_for_while_the_kernel_does(named, others):
    assert peers.unknown(f"{SHOWN}2001:db8::6 INCOMPLETE\n", with_peers(named)).others == others


def test_each_peer_is_asked_for_until_it_answers():
    prober = Prober(n192_0_2_1=1, n192_0_2_3=3)
    assert find(prober, "192.0.2.3", "192.0.2.1") == {"192.0.2.1": MAC, "192.0.2.3": MAC}
    assert prober.asked == ["192.0.2.1", "192.0.2.3", "192.0.2.3", "192.0.2.3"]


def test_one_that_never_answers_is_given_up():
    prober = Prober(n192_0_2_1=1)
    assert find(prober, "192.0.2.3", "192.0.2.1") == {"192.0.2.1": MAC}
    assert prober.asked.count("192.0.2.3") == peers.TRIES


def test_one_that_never_answers_is_given_up_where_others_speak_all_the_time():
    prober, times = Prober(), itertools.count(step=0.05)
    assert peers.find(prober, ["192.0.2.3"], lambda *_given: True, now=lambda: next(times)) == {}
    assert prober.asked == ["192.0.2.3"] * peers.TRIES


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A host whose configuration and neighbours are those above; what it sends."""

    class Host:
        sent, probers, path = [], [], tmp_path / "keepalived.conf"

        def links(self):
            return [netlink.Link(2, "eth0", True, b"\2" * 6)]

        def addresses(self):
            return [netlink.Address(2, "192.0.2.2", 24, usable=True)]

        def sending(self, message, source, destination):
            return lambda: self.sent.append((packet.decode(message, source, destination), source, destination))

    made = Host()
    made.sent, made.probers = [], []
    made.answering = {"n192_0_2_1": 1, "n192_0_2_10": 1}  # the first peer holds the VIP
    made.path.write_text(CONFIG)

    def prober(interface, family):
        made.probers.append((interface, family))
        return Prober(**made.answering)

    monkeypatch.setattr(peers, "NeighbourProber", prober)
    patient = functools.partial(peers.find, wait=lambda prober, _seconds: bool(prober.waiting))
    monkeypatch.setattr(peers, "find", patient)
    monkeypatch.setattr(peers.netlink, "Netlink", lambda: made)
    monkeypatch.setattr(peers.sockets, "open_socket", lambda *_given: made)
    shown = f"192.0.2.8 INCOMPLETE\n{SHOWN}"
    monkeypatch.setattr(peers.subprocess, "run", lambda command, **_o: subprocess.CompletedProcess(command, 0, shown))
    return made


def test_the_winner_hears_a_priority_to_which_nobody_yields(host):
    assert peers.main(str(host.path), "web") == 0
    (router, _other) = conf.routers(CONFIG)
    assert host.sent == [(senders.advertisement(router, 1)._replace(checksum="rfc3768"), "192.0.2.2", "192.0.2.1")]
    assert host.sent[0][0].auth_pass == b"0f3a9c1e"
    assert host.probers == [("eth0", 4)]


def test_others_are_asked_for_once_before_the_peers(host, monkeypatch):
    asked = []
    monkeypatch.setattr(Prober, "probe", lambda _prober, address: asked.append(address))
    assert peers.main(str(host.path), "web") == 0
    assert asked == ["192.0.2.8", *["192.0.2.1", "192.0.2.10", "192.0.2.3"] * peers.TRIES]


@pytest.mark.parametrize("answering", [{"n192_0_2_1": 1}, {"n192_0_2_10": 1}, {}])
def test_nobody_hears_it_where_no_peer_holds_the_addresses(host, answering):
    """Without preemption a Backup would wait for another Active_Down_Interval."""
    host.answering = answering
    assert peers.main(str(host.path), "web") == 0
    assert host.sent == [] and host.probers == [("eth0", 4)]


def test_where_the_kernel_knows_the_peers_nothing_is_sent(host, monkeypatch):
    known = "192.0.2.1 lladdr 02:00:00:00:00:01 REACHABLE\n"
    monkeypatch.setattr(peers.subprocess, "run", lambda command, **_o: subprocess.CompletedProcess(command, 0, known))
    assert peers.main(str(host.path), "web") == 0
    assert (host.sent, host.probers) == ([], [])


def test_an_instance_that_the_file_has_not_is_nothing_to_do(host):
    assert peers.main(str(host.path), "none") == 0
    assert host.sent == []


def test_a_file_that_cannot_be_read_is_named(host, capfd):
    assert peers.main("/none", "web") == 1
    assert "web: its peers cannot be told that it has yielded: No such file or directory." in capfd.readouterr().err
