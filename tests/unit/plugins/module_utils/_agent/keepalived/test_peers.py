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


CONFIG_6 = """\
vrrp_instance web {
    interface eth0
    virtual_router_id 51
    unicast_src_ip 2001:db8::2
    unicast_peer {
        2001:DB8:0::1
    }
    virtual_ipaddress {
        2001:db8::10/128
    }
}
"""


class Prober:
    """The neighbours that answer.

    :param answers: their MACs
    :param turns: at which of our questions, if it is not the first one
    """

    def __init__(self, answers, turns=None):
        self.answers, self.turns = answers, turns or {}
        self.asked, self.waiting = [], []

    def probe(self, address):
        self.asked.append(address)
        if address in self.answers and self.asked.count(address) == self.turns.get(address, 1):
            self.waiting.append((address, self.answers[address]))

    def replies(self):
        found, self.waiting = self.waiting, []
        return [*found, ("192.0.2.77", "02:00:00:00:00:77")]  # somebody else speaks


OTHER = "02:00:00:00:00:02"
VIRTUAL, FIRST, SECOND = "192.0.2.10", "192.0.2.1", "192.0.2.3"


def has_answers(prober, _seconds):
    return bool(prober.waiting)


def holder_of(prober):
    of_virtual = functools.partial(peers.holder_of, VIRTUAL)
    return of_virtual(peers.find(prober, [VIRTUAL, FIRST, SECOND], has_answers, enough=of_virtual))


@pytest.mark.parametrize("family, addresses", [(4, ["192.0.2.3"]), (6, ["2001:db8::6"])])
def test_others_are_asked_for_while_the_kernel_does(family, addresses):
    assert peers.asked_for(f"{SHOWN}2001:db8::6 INCOMPLETE\n", family) == addresses


def test_the_peer_with_the_mac_of_the_virtual_address_holds_it():
    assert holder_of(Prober({FIRST: OTHER, SECOND: MAC, VIRTUAL: MAC})) == SECOND


def test_another_peer_that_does_not_answer_is_not_waited_for():
    prober = Prober({FIRST: MAC, VIRTUAL: MAC})
    assert holder_of(prober) == FIRST
    assert prober.asked == [FIRST, VIRTUAL, SECOND]


def test_each_is_asked_until_it_answers():
    prober = Prober({FIRST: MAC, VIRTUAL: MAC}, turns={VIRTUAL: 3})
    assert holder_of(prober) == FIRST
    assert (prober.asked.count(FIRST), prober.asked.count(VIRTUAL)) == (1, 3)


@pytest.mark.parametrize("answers", [{}, {FIRST: MAC}, {VIRTUAL: MAC}, {FIRST: MAC, VIRTUAL: OTHER}])
def test_without_one_the_search_ends(answers):
    prober = Prober(answers)
    assert holder_of(prober) is None
    assert prober.asked.count(SECOND) == peers.TRIES


def test_the_search_ends_where_others_speak_all_the_time():
    prober, times = Prober({}), itertools.count(step=0.05)
    assert peers.find(prober, [VIRTUAL, FIRST], lambda *_given: True, now=lambda: next(times)) == {}
    assert prober.asked == [FIRST, VIRTUAL] * peers.TRIES


def test_what_arrived_while_this_process_stood_still_is_an_answer():
    prober, times = Prober({FIRST: MAC}, {FIRST: peers.TRIES}), itertools.count(step=5 * peers.WAIT)
    assert peers.find(prober, [FIRST], has_answers, now=lambda: next(times)) == {FIRST: MAC}


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
    made.answers = {FIRST: MAC, VIRTUAL: MAC}
    made.path.write_text(CONFIG)

    def prober(interface, family):
        made.probers.append((interface, family))
        return Prober(made.answers)

    monkeypatch.setattr(peers, "NeighbourProber", prober)
    patient = functools.partial(peers.find, wait=has_answers)
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


def test_a_holder_whose_mac_the_kernel_knows_hears_it_too(host, monkeypatch):
    """It may have asked for ours since the kernel has discarded the last Advertisement."""
    known = "192.0.2.1 lladdr 02:00:00:00:00:01 STALE\n"
    monkeypatch.setattr(peers.subprocess, "run", lambda command, **_o: subprocess.CompletedProcess(command, 0, known))
    assert peers.main(str(host.path), "web") == 0
    assert [to for _message, _source, to in host.sent] == [FIRST]


def test_a_peer_that_is_written_otherwise_is_the_same(host):
    host.path.write_text(CONFIG_6)
    host.answers = {"2001:db8::1": MAC, "2001:db8::10": MAC}
    assert peers.main(str(host.path), "web") == 0
    assert [to for _message, _source, to in host.sent] == ["2001:db8::1"]
    assert host.probers == [("eth0", 6)]


def test_others_are_asked_for_once_before_the_peers(host, monkeypatch):
    asked = []
    monkeypatch.setattr(Prober, "probe", lambda _prober, address: asked.append(address))
    assert peers.main(str(host.path), "web") == 0
    assert asked == ["192.0.2.8", *[FIRST, VIRTUAL, SECOND] * peers.TRIES]


@pytest.mark.parametrize("answers", [{FIRST: MAC}, {VIRTUAL: MAC}, {}])
def test_nobody_hears_it_where_no_peer_holds_the_addresses(host, answers):
    """Without preemption a Backup would wait for another Active_Down_Interval."""
    host.answers = answers
    assert peers.main(str(host.path), "web") == 0
    assert host.sent == [] and host.probers == [("eth0", 4)]


def test_an_instance_that_the_file_has_not_is_nothing_to_do(host):
    assert peers.main(str(host.path), "none") == 0
    assert host.sent == []


def test_a_file_that_cannot_be_read_is_named(host, capfd):
    assert peers.main("/none", "web") == 1
    assert "web: its peers cannot be told that it has yielded: No such file or directory." in capfd.readouterr().err


@pytest.mark.parametrize(
    "answers, others, told",
    [({VIRTUAL: MAC}, "", [FIRST]), ({FIRST: MAC}, "", []), ({VIRTUAL: MAC}, "192.0.2.3\n", [])],
    ids=["who answers", "nobody", "one of two peers"],
)
def test_where_the_addresses_are_on_another_link_it_is_asked_there(host, answers, others, told):
    """No MAC of that link tells which peer it is, so the only one is told, if anybody answers."""
    written = CONFIG.replace("192.0.2.10/32", "192.0.2.10/32 dev eth1").replace("192.0.2.3\n", others, 1)
    host.path.write_text(written)
    host.answers = answers
    assert peers.main(str(host.path), "web") == 0
    assert host.probers == [("eth1", 4)]
    assert [to for _message, _source, to in host.sent] == told
