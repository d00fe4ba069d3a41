# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One Virtual Router: its messages, its readings and its report."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings as checks
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.netlink import Link
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import links, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet, tracking
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.router import Router
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import VirtualAddress
from support.vrrp.fakes import FRONT, OTHER, OWN, SECOND, SIX, THIRD

ETH0 = Link(2, "eth0", True, bytes(6))
TRACKING = FRONT._replace(track=(settings.Tracked("haproxy"), settings.Tracked("load", -10)))


class Wall:
    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


def placed(instance=FRONT, source=OWN, wall=None):
    made = Router(instance, wall or Wall())
    made.move(links.Egress(ETH0, source))
    return made


class Port:
    """Keeps what is to be sent."""

    def sending(self, message, source, destination):
        return lambda: (message, source, destination)


PORT = Port()


def sent(router, priority, destination=OTHER):
    """What is sent to one of them: the message, its source and its destination."""
    return dict(router.senders(PORT, priority))[destination]()


def decoded(router, priority, destination=OTHER, source=OWN):
    assert sent(router, priority, destination)[1:] == (source, destination)
    return packet.decode(*sent(router, priority, destination))


def test_a_message_says_what_is_configured_and_the_priority_of_the_moment():
    router = placed(FRONT._replace(auth_pass=b"geheim"))
    said = decoded(router, 7)
    assert said._replace(checksum="") == router.advertisement._replace(priority=7)
    assert decoded(router, 0).priority == 0


def test_a_message_is_made_once():
    router = placed()
    assert router.senders(PORT, 7) is router.senders(PORT, 7)
    assert router.senders(PORT, 7) is not router.senders(PORT, 8)


def test_another_socket_is_another_way_out():
    router = placed()
    assert router.senders(PORT, 7) is not router.senders(Port(), 7)


def test_each_destination_has_a_message_of_its_own_whose_checksum_is_right():
    router = placed(FRONT._replace(version=3, peers=(OTHER, THIRD)))
    assert sent(router, 7, OTHER) != sent(router, 7, THIRD)
    assert decoded(router, 7, THIRD).checksum == packet.RFC5798


def test_the_checksum_is_the_one_that_is_configured():
    assert decoded(placed(FRONT._replace(version=3, checksum=packet.RFC9568)), 7).checksum == packet.RFC9568


def test_a_message_is_made_anew_when_the_source_or_the_settings_are_other_ones():
    router = placed(FRONT._replace(version=3))
    before = sent(router, 7, OTHER)
    router.move(links.Egress(ETH0, THIRD))
    assert sent(router, 7, OTHER) != before
    assert router.machine.source == router.ours.source == THIRD
    before = sent(router, 7, OTHER)
    router.configure(router.instance._replace(addresses=("192.0.2.77/32",)))
    assert sent(router, 7, OTHER) != before
    assert router.egress.source == THIRD


@pytest.mark.parametrize(
    "instance, destinations",
    [
        (FRONT._replace(peers=(OTHER, THIRD)), (OTHER, THIRD)),
        (FRONT._replace(multicast=True, peers=()), ("224.0.0.18",)),
        (SIX, ("ff02::12",)),
    ],
)
def test_it_sends_to_its_peers_or_to_the_group(instance, destinations):
    assert Router(instance).destinations() == destinations


def test_routers_of_one_interface_and_family_share_a_socket():
    assert Router(FRONT).socket_key == ("eth0", 4)
    assert Router(SIX).socket_key == ("eth0", 6)
    assert Router(FRONT._replace(source=OWN)).egress_key == ("eth0", 4, OWN)


def test_before_it_takes_part_it_must_know_its_interface_its_source_and_all_that_it_tracks():
    names = {"interface eth0", "the source address on eth0", "haproxy", "load"}
    assert Router(TRACKING).machine.tracked == names


@pytest.mark.parametrize(
    "name, kind, up, value, reading",
    [
        ("haproxy", checks.PROCESS, True, 0, 0),
        ("haproxy", checks.PROCESS, False, 0, tracking.FAULT),
        ("load", checks.SCRIPT, True, 0, 0),
        ("load", checks.SCRIPT, False, 0, -10),
        ("load", checks.FILE, False, 3, -30),
        ("load", checks.FILE, True, 0, 0),
        ("haproxy", checks.FILE, True, 0, 0),
        ("haproxy", checks.FILE, False, 1, tracking.FAULT),
    ],
)
def test_a_result_means_what_keepalived_would_make_of_it(name, kind, up, value, reading):
    assert Router(TRACKING).tracker_updates(checks.Check(name, kind), up, value) == [
        machine.TrackerUpdate(name, reading)
    ]


def test_the_result_of_what_it_does_not_track_means_nothing():
    assert Router(TRACKING).tracker_updates(checks.Check("other", checks.TCP), False, 0) == []


def test_what_is_heard_is_remembered_and_counted():
    wall = Wall()
    router = placed(wall=wall)
    event = router.record(router.advertisement._replace(priority=200), OTHER)
    assert (event.advertisement.priority, event.source) == (200, OTHER)
    wall.now += 2.5
    report = router.report([], None, now=0)
    assert report["received"] == 1
    assert report["last_advertisement"] == {"source": OTHER, "priority": 200, "at": wall.now - 2.5, "age": 2.5}


def test_a_clock_that_is_set_back_makes_no_negative_age():
    wall = Wall()
    router = placed(wall=wall)
    router.record(router.advertisement, OTHER)
    wall.now -= 3600
    assert router.report([], None, now=0)["last_advertisement"]["age"] == 0


def test_each_reason_is_counted_by_itself():
    router = Router(FRONT)
    for reason in ("length", "checksum", "length"):
        router.discard(reason)
    assert router.report([], None, now=0)["discarded"] == {"length": 2, "checksum": 1}


def test_the_report_has_exactly_what_was_agreed():
    wall = Wall()
    router = placed(TRACKING, wall=wall)
    readings = {"interface eth0": 0, "the source address on eth0": 0, "load": -30}
    router.state = router.state._replace(name=machine.BACKUP, readings=readings)
    wall.now += 60
    router.changed(machine.BACKUP, "start")
    assert router.report([VirtualAddress("192.0.2.10/32", "eth0")], "all", now=0) == {
        "name": "front",
        "interface": "eth0",
        "vrid": 51,
        "version": 2,
        "family": 4,
        "multicast": False,
        "state": "Backup",
        "since": 1_700_000_060.0,
        "reason": "start",
        "priority": {"configured": 100, "effective": 70, "because": [{"name": "load", "change": -30}]},
        "waiting_for": ["haproxy"],
        "addresses": ["192.0.2.10/32"],
        "held": ["192.0.2.10/32"],
        "virtual_routes": [],
        "source": OWN,
        "peers": [OTHER],
        "group": "all",
        "last_advertisement": None,
        "rivals": [],
        "other_holders": [],
        "sent": 0,
        "received": 0,
        "lower": 0,
        "transitions": 1,
        "takeovers": 0,
        "discarded": {},
    }


def test_becoming_active_is_a_takeover():
    router = Router(FRONT)
    for state in (machine.BACKUP, machine.ACTIVE, machine.FAULT, machine.ACTIVE):
        router.changed(state, "a test")
    report = router.report([], None, now=0)
    assert (report["takeovers"], report["transitions"]) == (2, 4)


def test_a_fault_is_shown_as_no_change_of_the_priority():
    router = Router(TRACKING)
    router.state = router.state._replace(readings={"haproxy": tracking.FAULT})
    assert router.report([], None, now=0)["priority"]["because"] == [{"name": "haproxy", "change": None}]


def test_a_report_does_not_change_with_what_it_is_about():
    router = Router(FRONT)
    report = router.report([], None, now=0)
    router.discard("length")
    assert report["discarded"] == {}


def test_an_instance_without_an_egress_can_be_reported():
    assert Router(SIX).report([], None, now=0)["source"] is None
    assert Router(SIX).ours.source == "::"
    assert Router(FRONT._replace(interval=2 * SECOND)).machine.source == "0.0.0.0"
