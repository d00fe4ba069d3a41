# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Another host that answers for an address which is held here, without speaking VRRP."""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import other_holders
from support.vrrp.fakes import BACK, FRONT, OTHER, SECOND, SIX, VIP, Host

STRANGER, SECOND_STRANGER = "02:00:00:00:00:09", "02:00:00:00:00:0a"
FOUND = f"front: another host has {VIP} as well ({STRANGER}): take it off there"


@pytest.fixture
def host():
    return Host().start().activate()


def test_another_host_that_answers_is_logged_once_and_reported(host):
    host.network.answers[VIP] = [STRANGER]
    host.let(300)
    assert host.says() == [FOUND]
    assert host.report()["other_holders"] == [{"address": VIP, "macs": [STRANGER]}]
    host.network.answers[VIP] = [SECOND_STRANGER, STRANGER]
    host.let(60)
    assert host.says() == [f"front: another host has {VIP} as well ({STRANGER}, {SECOND_STRANGER}): take it off there"]


def test_forged_replies_fill_neither_the_line_nor_the_report(host):
    host.network.answers[VIP] = [f"02:00:00:00:{number // 256:02x}:{number % 256:02x}" for number in range(5000)]
    host.network.answers["192.0.2.77"] = [STRANGER]  # nobody asked for it
    host.let(60)
    (found,) = host.report()["other_holders"]
    assert len(found["macs"]) == other_holders.MAX_CLAIMS and len(host.daemon.other_holders._claims) == 1


def test_its_end_is_logged(host):
    host.network.answers[VIP] = [STRANGER]
    host.let(60)
    host.done()
    host.network.answers.clear()
    host.let(120)
    assert host.says() == [f"front: no other host has {VIP} any more"]
    assert host.report()["other_holders"] == []


def test_each_address_of_each_active_router_is_probed_once_a_minute_where_it_is():
    host = Host().start(FRONT, BACK, SIX).activate()
    host.let(60)
    probes = [("eth0", VIP), ("eth0", "2001:db8::10"), ("eth0", "fe80::10"), ("eth1", "198.51.100.10")]
    assert sorted(host.network.probes) == probes
    host.let(62)
    assert len(host.network.probes) == 2 * len(probes)
    assert len(host.network.probers) == 3, "they are kept"


def test_a_backup_probes_nothing(host):
    host.hears(200)
    for _second in range(200):
        host.hears(200)
        host.let(1)
    assert host.network.probes == []


def test_another_interface_of_this_host_on_the_same_link_may_answer(host):
    host.netlink.link("eth1", 3, mac=bytes.fromhex("020000000009"))
    host.network.answers[VIP] = [STRANGER]
    host.let(120)
    assert host.says() == []


def test_who_answers_for_a_router_that_yields_meanwhile_is_right(host):
    host.network.answers[VIP] = [STRANGER]
    while not host.network.probes:
        host.let(0.1)
    host.hears(200)
    host.done()
    host.let(2)
    assert host.says() == []


def test_what_was_found_is_found_anew_after_the_router_was_backup(host):
    host.network.answers[VIP] = [STRANGER]
    host.let(60)
    host.hears(200)
    assert host.report()["other_holders"] == []
    host.let(4)
    host.done()
    host.let(120)
    assert host.says() == [FOUND]


def test_answers_from_between_the_rounds_do_not_count(host):
    host.let(61)
    (prober,) = host.network.probers
    prober.arrived.append((VIP, STRANGER))
    host.let(61)
    assert host.says() == []


def test_many_addresses_are_probed_in_parts_so_that_no_advertisement_is_late():
    many = FRONT._replace(version=3, interval=SECOND // 100, addresses=tuple(f"10.0.0.{n}/32" for n in range(200)))
    host = Host().start(many).activate()
    while not host.network.probes:
        host.let(0.01)
    assert len(host.network.probes) <= 16
    host.let(1)
    assert len(host.network.probes) == 200


@pytest.mark.parametrize("number", [errno.ENETDOWN, errno.EAGAIN])
def test_an_interface_that_takes_no_probe_is_tried_again(host, number):
    host.network.unprobed = OSError(number, "no")
    host.let(61)
    host.network.unprobed = None
    host.network.answers[VIP] = [STRANGER]
    host.let(61)
    assert host.says() == [FOUND]


def test_nothing_is_left_open_at_the_end(host):
    host.let(61)
    host.daemon.stop()
    assert all(prober.closed for prober in host.network.probers)
    assert OTHER not in host.network.probes


def test_an_interface_without_ethernet_is_not_probed():
    host = Host()
    host.netlink.link("eth0", 2, mac=b"")
    host.start().activate()
    host.let(120)
    assert host.network.probes == []
