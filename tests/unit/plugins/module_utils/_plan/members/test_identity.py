# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each member is a host of its own, and each VIP an address that no host has."""

from __future__ import annotations

import pytest
from support.plans import pairs, refusals


def with_address(number, address, prefix=24, **settings):
    """Return a pair of which one member has another address beside its own."""
    members = pairs.pair(**settings)
    mac = f"02:00:00:00:00:0{number}"
    members[number - 1]["host"]["addresses"].append(
        {"interface": "eth0", "address": address, "prefix": prefix, "mac": mac}
    )
    return members


def copied(*names):
    """Return a pair, or more, in which members have the addresses of others: lb3=lb2 is `lb3` with those of `lb2`."""
    members = [pairs.member(number) for number in range(1, max(2, *(int(name[2]) for name in names)) + 1)]
    for name in names:
        copy, original = (int(each[2:]) - 1 for each in name.split("="))
        members[copy]["host"] = members[original]["host"]
    return members


def in_group(group, member):
    return {**member, "groups": [group, "all"]}


def wide(vip, link, all_of_it):
    return [
        f"{name}: VIP {vip} is wider than eth0's subnet {link}, and who holds it would look for all of {all_of_it} on "
        f"that link: write /{link.partition('/')[2]}, or no length."
        for name in EACH
    ]


EACH = ("lb1", "lb2")
OWN = "is this host's own address on eth0: choose one that nobody has."
OWN_HOST = "is this host's own address (ansible_host): choose one that nobody has."
IDENTITIES = {
    "VIP equals lb1's ansible_host, with /24": (
        refusals.of_forecast("192.0.2.1", "192.0.2.2", vips=["192.0.2.1/24"]),
        [f"lb1: VIP 192.0.2.1 {OWN_HOST}"],
    ),
    "VIP equals lb1's ansible_host in another spelling": (
        refusals.of_forecast("2001:DB8:0::1", "2001:db8::2", vips=["2001:db8::1"]),
        [f"lb1: VIP 2001:db8::1 {OWN_HOST}"],
    ),
    "VIP equals lb1's address /24, lb1 has a second address in the subnet": (
        refusals.of(with_address(1, "192.0.2.7", vips=["192.0.2.1/24"])),
        [f"lb1: VIP 192.0.2.1 {OWN}"],
    ),
    "VIP is the peer's own address lb2 (/24), lb2 has a second": (
        refusals.of(with_address(2, "192.0.2.7", vips=["192.0.2.2/24"])),
        [f"lb2: VIP 192.0.2.2 {OWN}"],
    ),
    "broadcast address of the hosts' subnet, no prefix": (
        refusals.of_pair(vips=["192.0.2.255"]),
        [
            f"{name}: VIP 192.0.2.255 is the broadcast address of eth0's subnet 192.0.2.0/24: choose another."
            for name in EACH
        ],
    ),
    "network address of the hosts' subnet, no prefix": (
        refusals.of_pair(vips=["192.0.2.0"]),
        [
            f"{name}: VIP 192.0.2.0 is the network address of eth0's subnet 192.0.2.0/24: choose another."
            for name in EACH
        ],
    ),
    "VIP /0": (refusals.of_pair(vips=["192.0.2.10/0"]), wide("192.0.2.10/0", "192.0.2.0/24", "0.0.0.0/0")),
    "VIP /8 while the link is /24": (
        refusals.of_pair(vips=["192.0.2.10/8"]),
        wide("192.0.2.10/8", "192.0.2.0/24", "192.0.0.0/8"),
    ),
    "VIP /16 where the link has /24": (
        refusals.of_pair(vips=["192.0.2.10/16"]),
        wide("192.0.2.10/16", "192.0.2.0/24", "192.0.0.0/16"),
    ),
    "IPv6 VIP, hosts /64, VIP /48": (
        refusals.of_pair(vips=["2001:db8::10/48"]),
        wide("2001:db8::10/48", "2001:db8::/64", "2001:db8::/48"),
    ),
    "two members, one ansible_host (copy and paste)": (
        refusals.of_forecast("192.0.2.1", "192.0.2.1"),
        ["lb1 and lb2 both have the address 192.0.2.1: give each a host of its own (ansible_host)."],
    ),
    "three members, lb3 a copy of lb2's address": (
        refusals.of(copied("lb3=lb2")),
        [
            f"lb2 and lb3 both have {what}: give each a host of its own (ansible_host)."
            for what in ("the address 192.0.2.2", "the hardware address 02:00:00:00:00:02")
        ],
    ),
    "pair_members twice the same": (
        refusals.of([pairs.member(1), pairs.member(1)]),
        ["pair_members: lb1 is named twice, name each host once."],
    ),
    "host in pair and in ipi_masters": (
        refusals.of([in_group("ipi_masters", pairs.member(1)), pairs.member(2)]),
        [
            "lb1 is in the group ipi_masters too, and each layout would overwrite the other's configuration: "
            "take it out of one of them."
        ],
    ),
    "host in pair and in ipi_workers": (
        refusals.of([pairs.member(1), in_group("ipi_workers", pairs.member(2))]),
        [
            "lb2 is in the group ipi_workers too, and each layout would overwrite the other's configuration: "
            "take it out of one of them."
        ],
    ),
}


@pytest.mark.parametrize("faults, sentences", IDENTITIES.values(), ids=IDENTITIES)
def test_an_address_or_a_host_that_belongs_to_another_is_refused(faults, sentences):
    assert faults == sentences


def test_a_vip_that_an_earlier_run_has_brought_is_no_members_own():
    for known in ({"members": {"lb1": ["192.0.2.1"]}}, {"instances": [pairs.running(addresses=["192.0.2.7/24"])]}):
        members = with_address(1, "192.0.2.7", vips=["192.0.2.7/24"])
        members[0]["host"].update(known)
        assert refusals.of(members) == []


def test_members_behind_forwarded_ports_are_forecast():
    assert refusals.of_forecast("127.0.0.1", "127.0.0.1") == []


NAMES = ["lb1.example.com", "lb2.example.com", "lb3.example.com"]


@pytest.mark.parametrize("vips", [["192.0.2.5"], ["192.0.2.5", "192.0.2.6"], ["192.0.2.5", "192.0.2.6", "192.0.2.1"]])
@pytest.mark.parametrize("reached", [NAMES, [NAMES[0], "192.0.2.4", "192.0.2.7"], ["192.0.2.7", *NAMES[1:]]])
def test_hosts_that_were_not_read_are_never_taken_for_one(vips, reached):
    """The forecast makes an address up for each that has but a name in the inventory."""
    assert refusals.of_forecast(*reached, vips=vips) == []
