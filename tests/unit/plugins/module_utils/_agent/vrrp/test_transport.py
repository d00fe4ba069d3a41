# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sockets: one for each interface and family, whatever happens to the interface; and what is heard on them."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import settings, transport
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from support.vrrp.fakes import BACK, DOWN_INTERVAL, FRONT, OTHER, OWN, SECOND, SIX, THIRD, VIP, Host
from support.vrrp.packets import flip

GROUP = FRONT._replace(name="group", vrid=53, multicast=True, peers=(), addresses=("192.0.2.12/32",))
SECRET = FRONT._replace(auth_pass=b"geheim12")


@pytest.fixture
def host():
    return Host()


# --- sockets ----------------------------------------------------------------------------------------------------


def opened(host):
    return sorted((port.interface, port.index, port.family, port.multicast) for port in host.network.open_ports)


def test_routers_share_the_socket_of_their_interface_and_family(host):
    second = FRONT._replace(name="second", vrid=54, addresses=("192.0.2.13/32",))
    host.start(FRONT, second, SIX, BACK)
    assert opened(host) == [("eth0", 2, 4, False), ("eth0", 2, 6, True), ("eth1", 3, 4, False)]


def test_a_socket_is_in_the_group_when_one_of_its_routers_wants_it(host):
    host.start(FRONT, GROUP)
    assert opened(host) == [("eth0", 2, 4, True)]
    host.apply(FRONT)
    assert opened(host) == [("eth0", 2, 4, False)]


def test_a_socket_that_no_router_needs_any_more_is_closed(host):
    host.start(FRONT, BACK)
    host.apply(FRONT)
    assert opened(host) == [("eth0", 2, 4, False)]
    host.daemon.stop()
    assert opened(host) == []
    assert list(host.loop.watched) == [host.netlink.fileno()]


def test_an_interface_that_comes_later_gets_its_socket_then(host):
    host.netlink.unlink("eth1")
    host.start(BACK)
    assert (opened(host), host.state) == ([], "Fault")
    host.netlink.link("eth1", 7)
    host.netlink.put("198.51.100.1/24", "eth1")
    host.let()
    assert (opened(host), host.state) == ([("eth1", 7, 4, False)], "Backup")


def test_a_socket_that_cannot_be_opened_is_logged_once_and_tried_every_ten_seconds(host):
    host.network.shut = errno.EPERM
    host.start()
    assert host.state == "Fault"
    host.let(45)
    said = host.says()
    assert said.count("eth0, IPv4: no socket for VRRP: Operation not permitted") == 1
    host.network.shut = None
    host.let(10)
    assert host.says()[0] == "eth0, IPv4: there is a socket for VRRP"
    assert host.state in ("Backup", "Active")


def test_news_of_links_do_not_multiply_what_waits_for_a_socket(host):
    host.network.shut = errno.EPERM
    host.start()
    for index in range(10, 60):
        host.netlink.link(f"veth{index}", index)
        host.let()
    assert host.loop.waiting == 1


# --- sending ----------------------------------------------------------------------------------------------------


def test_a_peer_that_cannot_be_reached_keeps_an_advertisement_from_no_other(host):
    host.start(FRONT._replace(peers=(OTHER, THIRD)))
    host.port().unreachable.add(OTHER)
    host.done()
    host.let(DOWN_INTERVAL + 1)
    done = host.done()
    assert done[0] == f"send 100 to {THIRD}"
    assert f"says front: no Advertisement can be sent to {OTHER}: Network is unreachable" in done
    assert host.report()["sent"] == 2
    host.port().unreachable.clear()
    host.let(1)
    assert host.done()[:3] == [
        f"send 100 to {OTHER}",
        f"send 100 to {THIRD}",
        "says front: Advertisements can be sent",
    ]


def test_an_advertisement_that_reached_no_peer_is_not_counted_as_sent(host):
    host.start()
    host.port().unreachable.add(OTHER)
    host.let(DOWN_INTERVAL + 10)
    assert (host.state, host.report()["sent"]) == ("Active", 0)
    assert sum("no Advertisement can be sent" in line for line in host.says()) == 1


# --- hearing ----------------------------------------------------------------------------------------------------


def test_what_is_heard_is_for_the_router_of_its_vrid_interface_and_family(host):
    host.start(FRONT, GROUP, BACK, SIX)
    host.hears(201)
    host.hears(202, of=GROUP, destination=packet.GROUP)
    host.hears(203, source="198.51.100.2", of=BACK)
    host.hears(204, source="fe80::9", destination=packet.GROUP6, of=SIX)
    heard = {name: host.report(name)["last_advertisement"]["priority"] for name in host.states}
    assert heard == {"front": 201, "group": 202, "back": 203, "six": 204}
    assert {host.report(name)["received"] for name in host.states} == {1}


def test_a_backup_that_was_late_reads_what_has_arrived_before_its_timer_counts_as_expired(host):
    host.start()
    host.done()
    host.let(DOWN_INTERVAL - 0.1)
    for _count in range(3):
        host.deliver(200)
    host.loop.stall(5)
    host.let()
    assert (host.state, host.done()) == ("Backup", [])
    host.let(DOWN_INTERVAL - 0.001)
    assert host.state == "Backup"
    host.let(0.001)
    assert host.state == "Active"


def test_to_a_backup_that_was_late_an_offer_is_none_after_which_the_active_router_has_advertised(host):
    host.start()
    host.done()
    host.let(1)
    host.deliver(0)
    host.deliver(200)
    host.loop.stall(5)
    host.let()
    assert (host.state, host.done()) == ("Backup", [])


def test_a_backup_that_was_late_reads_even_behind_a_thousand_other_messages(host):
    host.start()
    host.let(DOWN_INTERVAL - 0.1)
    for _count in range(1000):
        host.deliver(200, of=FRONT._replace(vrid=99))
    host.deliver(200)
    host.done()
    host.loop.stall(5)
    host.let()
    assert (host.state, host.done()) == ("Backup", [])


def test_a_backup_whose_silence_is_real_takes_over_though_it_was_late(host):
    host.start()
    host.let(1)
    host.deliver(99)
    host.loop.stall(5)
    host.let()
    assert host.state == "Active"


def test_a_timer_that_looks_again_leaves_what_has_come_to_its_turn(host):
    """Otherwise each of many Backups would read the others' messages before any Advertisement could go out."""
    host.start()
    host.let(1)
    host.hears(200)  # the timer stands for 3.6 s still, and the wait lasts until 4.6 s
    read = []
    original = host.port().receive
    host.port().receive = lambda: read.append(host.loop.now()) or original()
    host.let(DOWN_INTERVAL - 1 + 0.1)
    assert read == []
    assert host.state == "Backup"


def test_an_active_router_advertises_before_it_reads_a_flood(host):
    host.start().activate()
    for _count in range(10 * transport.BATCH):
        host.deliver(200, of=FRONT._replace(vrid=99))
    host.loop.stall(1.5)
    host.let()
    assert host.done() == [f"send 100 to {OTHER}"]


def test_a_batch_is_all_that_is_read_between_two_looks_at_the_clock(host):
    host.start()
    for _count in range(transport.BATCH + 1):
        host.deliver(200)
    host.loop.watched[host.port().fileno()](1)
    assert len(host.port().inbox) == 1


# --- what is discarded ------------------------------------------------------------------------------------------


WRONG = {
    "length": {"mangle": lambda message: message[:7]},
    "carp": {"mangle": lambda message: b"\x21\x33\x00\x07" + bytes(32)},
    "version": {"of": FRONT._replace(version=3)},
    "type": {"mangle": lambda message: b"\x22" + message[1:]},
    "checksum": {"mangle": flip},
    "interval": {"interval": 2 * SECOND},
    "authentication": {"auth_pass": b"falsch"},
    "own": {"source": OWN},
    "destination": {"destination": packet.GROUP},
    "peer": {"source": THIRD},
}


@pytest.mark.parametrize("reason", WRONG)
def test_a_discarded_message_is_counted_by_its_reason_and_logged(host, reason):
    host.start(SECRET)
    host.done()
    host.hears(200, **{"of": SECRET, **WRONG[reason]})
    assert host.report()["discarded"] == {reason: 1}
    assert host.report()["received"] == 0
    source = WRONG[reason].get("source", OTHER)
    (said,) = host.says()
    assert said.startswith(f"front: a message from {source} is discarded: ")


@pytest.mark.parametrize("mangle", [None, flip])
def test_a_message_of_an_unknown_vrid_that_arrived_before_the_filter_was_set_is_ignored(host, mangle):
    host.start()
    host.done()
    host.hears(200, of=FRONT._replace(vrid=99), mangle=mangle)
    assert (host.report()["discarded"], host.done()) == ({}, [])


def test_a_socket_receives_the_vrids_of_its_interface_and_family_also_after_a_reload(host):
    host.start(FRONT, FRONT._replace(name="other", vrid=77, addresses=("192.0.2.77/32",)), BACK, SIX)
    assert (host.port().vrids, host.port("eth1").vrids, host.port(family=6).vrids) == ({51, 77}, {52}, {51})
    port = host.port()
    host.apply(FRONT, FRONT._replace(name="other", vrid=78, addresses=("192.0.2.77/32",)))
    assert host.port() is port and port.vrids == {51, 78}


def test_a_flood_of_wrong_messages_is_a_few_lines_for_each_reason_whatever_they_look_like(host):
    host.start(SECRET)
    host.done()
    for number in range(200):
        source = f"192.0.2.{number + 20}"
        host.hears(200, source, of=SECRET)
        host.hears(200, source, of=SECRET, mangle=lambda message, cut=number % 8: message[:cut])
    assert host.report()["discarded"]["peer"] == 200
    assert len(host.says()) == 2 * transport.MAX_SOURCES  # "peer" and "length"
    host.let(120)
    assert sum("have stopped" in line for line in host.says()) == 2 * transport.MAX_SOURCES


def test_each_router_whose_messages_are_discarded_is_named_and_each_end_of_it(host):
    host.start(SECRET._replace(peers=(OTHER, THIRD)))
    host.done()
    for _time in range(2):
        host.hears(200, OTHER, of=SECRET, auth_pass=b"falsch")
        host.hears(200, THIRD, of=SECRET, auth_pass=b"auch")
    assert [line.split(" is discarded")[0] for line in host.says()] == [
        f"front: a message from {OTHER}",
        f"front: a message from {THIRD}",
    ]
    for _second in range(80):
        host.hears(200, THIRD, of=SECRET, auth_pass=b"auch")
        host.let(1)
    assert host.says()[1:] == [f"front: such messages from {OTHER} have stopped (authentication)"]


def test_a_fault_of_others_is_over_when_nothing_of_its_kind_has_come_for_a_minute(host):
    host.start(FRONT._replace(priority=1)).hears(200, source=THIRD)
    host.let(3)
    host.hears(200, source=THIRD)
    host.done()
    for _second in range(59):
        host.hears(200)
        host.let(1)
    assert host.done() == []
    for _second in range(20):
        host.hears(200)
        host.let(1)
    assert host.done() == [f"says front: such messages from {THIRD} have stopped (peer)"]
    host.hears(200, source=THIRD)
    assert len(host.says()) == 1
    assert host.report()["discarded"] == {"peer": 3}


def test_no_timer_runs_when_there_are_no_faults_to_expire(host):
    host.start().activate()
    before = host.loop.waiting
    host.hears(200, source=THIRD)
    host.let(200)
    assert host.loop.waiting == before


def test_other_addresses_are_logged_once_and_never_discarded(host):
    host.start()
    host.done()
    for _second in range(100):
        host.hears(200, addresses=("192.0.2.99",))
        host.let(1)
    assert host.state == "Backup"
    assert host.report()["received"] == 100
    assert host.done() == [f"says front: {OTHER} has other addresses: 192.0.2.99"]
    for _second in range(80):
        host.hears(200)
        host.let(1)
    assert host.done() == [f"says front: such messages from {OTHER} have stopped (addresses)"]


def test_two_neighbours_of_which_one_has_other_addresses_make_no_line_each_second(host):
    host.start(FRONT._replace(peers=(OTHER, THIRD)))
    host.done()
    for _second in range(50):
        host.hears(200, OTHER)
        host.hears(200, THIRD, addresses=("192.0.2.99",))
        host.let(1)
    assert len(host.done()) == 1


@pytest.mark.parametrize("priority, addresses", [(0, ("192.0.2.99",)), (200, ("192.0.2.11", VIP))])
def test_another_order_of_the_addresses_and_what_a_router_says_that_gives_up_are_no_difference(
    host, priority, addresses
):
    two = FRONT._replace(addresses=(f"{VIP}/32", "192.0.2.11/32"))
    host.start(two)
    host.done()
    host.hears(priority, addresses=addresses, of=two)
    assert host.done() == []


def test_no_line_has_a_password(host):
    host.start(SECRET)
    host.hears(200, of=SECRET, auth_pass=b"falsch")
    text = "\n".join(host.says()) + str(host.daemon.report())
    assert "falsch" not in text
    assert "geheim" not in text


def test_multicast_is_off_by_default():
    assert settings.Instance._field_defaults["multicast"] is False


THREE = FRONT._replace(version=3)


def test_another_interval_of_version_3_is_logged_once_for_each_interval(host):
    host.start(THREE)
    host.done()
    for interval in (SECOND // 10, SECOND // 10, SECOND // 2, SECOND // 10, SECOND):
        host.hears(200, of=THREE, interval=interval)
    assert host.says() == [
        f"front: {OTHER} has an interval of 0.1 s, which a Backup adopts; ours is 1 s",
        f"front: {OTHER} has an interval of 0.5 s, which a Backup adopts; ours is 1 s",
    ]


def test_a_router_that_resigns_has_no_other_interval(host):
    host.start(THREE)
    host.done()
    host.hears(0, of=THREE, interval=SECOND // 10)
    assert host.says() == []


def test_a_flood_of_forged_intervals_is_no_flood_of_log_lines(host):
    host.start(THREE)
    host.done()
    for centiseconds in range(1, 1000):
        host.hears(200, of=THREE, interval=centiseconds * SECOND // 100)
    assert len(host.says()) == transport.MAX_SOURCES
