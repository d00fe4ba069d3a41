# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Virtual addresses that another interface carries, and those that Advertisements leave out."""

from __future__ import annotations

import errno

import pytest
from support.vrrp.fakes import DOWN_INTERVAL, FRONT, OTHER, SIX, VIP, Host

ELSEWHERE, EXCLUDED = "198.51.100.10", "2001:db8::10"
ADDRESSES = [(f"{VIP}/32", "eth0"), (f"{ELSEWHERE}/24", "eth1"), (f"{EXCLUDED}/128", "eth1")]
WIDE = FRONT._replace(
    addresses=(f"{VIP}/32", f"{ELSEWHERE}/24 dev eth1"), excluded_addresses=(f"{EXCLUDED}/128 dev eth1",)
)
STRANGER = "02:00:00:00:00:09"


@pytest.fixture
def host():
    return Host()


def test_each_address_comes_and_goes_where_it_is_carried_and_is_announced_there(host):
    host.start(WIDE)
    host.done()
    host.let(DOWN_INTERVAL)
    acts = host.acts()
    assert acts[1:4] == [f"add {VIP}/32 to eth0", f"add {ELSEWHERE}/24 to eth1", f"add {EXCLUDED}/128 to eth1"]
    announced = [f"announce {VIP} on eth0", f"announce {ELSEWHERE} on eth1", f"announce {EXCLUDED} on eth1"]
    assert acts[4:7] == announced
    host.hears(200, of=WIDE)
    deleted = [line for line in host.acts() if line.startswith("delete")]
    assert deleted == [f"delete {each} from {name}" for each, name in ADDRESSES]
    assert host.held == []


def test_advertisements_have_the_addresses_that_are_not_excluded(host):
    host.start(WIDE)
    sent = []
    host.port().heard = sent.append
    host.let(DOWN_INTERVAL)
    assert sent[0].addresses == (VIP, ELSEWHERE)


def test_the_report_writes_addresses_as_the_configuration_does(host):
    host.start(WIDE).activate()
    written = [f"{VIP}/32", f"{ELSEWHERE}/24 dev eth1", f"{EXCLUDED}/128 dev eth1"]
    assert (host.report()["addresses"], host.report()["held"]) == (written, written)
    assert host.daemon.held() == [address for address, _name in ADDRESSES]


@pytest.mark.parametrize("address, name", ADDRESSES)
def test_each_address_is_put_back_where_it_was(host, address, name):
    host.start(WIDE).activate()
    host.netlink.take_away(address, name)
    host.let()
    assert host.done()[:2] == [
        f"add {address} to {name}",
        f"says front: {address} put on {name}: another program had removed it",
    ]


@pytest.mark.parametrize("address, name", ADDRESSES)
def test_each_address_that_is_added_to_a_backup_is_removed(host, address, name):
    host.start(WIDE)
    host.hears(200, of=WIDE)
    host.done()
    host.netlink.put(address, name)
    host.let()
    assert host.acts() == [f"delete {address} from {name}"]


def test_an_address_on_an_interface_that_is_not_configured_is_left_alone(host):
    host.start(WIDE).activate()
    host.netlink.put(f"{VIP}/32", "eth1")
    host.let()
    assert host.done() == []


@pytest.mark.parametrize("address, name", ADDRESSES)
def test_an_address_that_a_crash_left_is_adopted_wherever_it_is(host, address, name):
    host.netlink.put(address, name)
    host.start(WIDE)
    host.let(1 + 156 / 256)
    assert host.state == "Active"


@pytest.mark.parametrize("address, name", ADDRESSES[1:])
def test_each_address_is_needed(host, address, name):
    host.netlink.refused[address] = errno.EACCES
    host.start(WIDE)
    host.let(DOWN_INTERVAL)
    assert f"front: {address} cannot be put on {name}: Permission denied" in host.says()
    assert (host.state, host.held) == ("Fault", [])


@pytest.mark.parametrize("instance", [WIDE, WIDE._replace(dont_track_primary=True)])
def test_the_other_interface_is_tracked(host, instance):
    host.start(instance).activate()
    host.netlink.link("eth1", 3, up=False)
    host.let()
    assert f"send 0 to {OTHER}" in host.acts()
    assert (host.state, host.report()["reason"]) == ("Fault", "interface eth1 is down")
    host.netlink.link("eth1", 3)
    host.let(DOWN_INTERVAL)
    assert (host.state, len(host.held)) == ("Active", 3)


def test_an_interface_that_is_not_there_yet_is_a_fault(host):
    host.netlink.unlink("eth1")
    host.start(WIDE)
    assert (host.state, host.report()["reason"]) == ("Fault", "interface eth1 is not there")
    host.netlink.link("eth1", 9)
    host.let(DOWN_INTERVAL)
    assert (host.state, len(host.held)) == ("Active", 3)


def test_an_interface_that_another_one_replaces_is_left_first(host):
    host.start(WIDE).activate()
    host.netlink.link("lan", 3)
    host.netlink.link("eth1", 4)
    host.let()
    assert f"delete {ELSEWHERE}/24 from lan" in host.acts()
    host.let(DOWN_INTERVAL)
    assert f"add {ELSEWHERE}/24 to eth1" in host.acts()
    assert host.state == "Active"


def test_another_mac_of_the_other_interface_is_announced_at_once(host):
    host.start(WIDE).activate()
    host.netlink.link("eth1", 3, mac=bytes.fromhex("020000000001"))
    host.let()
    assert host.done()[:2] == [
        "says front: interface eth1 has another MAC: the addresses are announced again",
        f"announce {VIP} on eth0",
    ]


def test_another_holder_is_searched_where_the_address_is(host):
    host.start(WIDE).activate()
    host.network.answers[EXCLUDED] = [STRANGER]
    host.let(62)
    assert sorted(host.network.probes) == [("eth0", VIP), ("eth1", ELSEWHERE), ("eth1", EXCLUDED)]
    assert host.report()["other_holders"] == [{"address": EXCLUDED, "macs": [STRANGER]}]


def test_no_router_sends_from_an_excluded_address(host):
    host.start(FRONT._replace(excluded_addresses=("fe80::10/128",)), SIX._replace(addresses=("fe80::11/128",)))
    host.netlink.take_away("fe80::1/64")
    host.netlink.put("fe80::10/128")
    host.let()
    assert host.report("six")["source"] is None


def test_a_reload_adds_addresses_on_another_interface_and_the_router_stays_active(host):
    host.start().activate()
    host.apply(WIDE)
    assert host.acts()[:2] == [f"add {ELSEWHERE}/24 to eth1", f"add {EXCLUDED}/128 to eth1"]
    assert (host.state, len(host.held)) == ("Active", 3)


def test_an_address_that_a_reload_moves_to_another_interface_is_there_alone(host):
    host.start(WIDE).activate()
    host.apply(WIDE._replace(addresses=(f"{VIP}/32 dev eth1", f"{ELSEWHERE}/24 dev eth1")))
    assert host.acts()[:2] == [f"delete {VIP}/32 from eth0", f"add {VIP}/32 to eth1"]
    assert (host.state, len(host.held)) == ("Active", 3)


def test_an_address_that_a_reload_excludes_stays_where_it_is(host):
    host.start(WIDE).activate()
    host.apply(
        WIDE._replace(addresses=WIDE.addresses[:1], excluded_addresses=(WIDE.addresses[1], *WIDE.excluded_addresses))
    )
    assert host.acts() == []
