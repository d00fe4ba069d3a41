# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A port that goes down and comes back with all that it had: the commands. The kernel's part: test_drill_events."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import ports
from support.programs import Programs

UP = "2: eth0@if9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP"
ROUTES = {
    "-4": """default via 192.0.2.1 proto dhcp src 192.0.2.11 metric 100
198.51.100.0/24 via 192.0.2.254 linkdown
203.0.113.0/24 via 192.0.2.9 proto bgp
192.0.2.0/24 proto kernel scope link src 192.0.2.11
local 192.0.2.10 table local proto kernel scope host src 192.0.2.10
default via 192.0.2.2 table 100 proto static
""",
    "-6": """default via fe80::1 proto ra metric 1024 expires 1790sec pref medium
2001:db8:1::/48 via 2001:db8::1 metric 1024 expires 90sec pref medium
multicast ff00::/8 table local proto kernel metric 256 pref medium
""",
}
KEPT = ports.Port(
    "eth0",
    (
        ("-4", "default via 192.0.2.1 proto dhcp src 192.0.2.11 metric 100 dev eth0"),
        ("-4", "198.51.100.0/24 via 192.0.2.254 dev eth0"),
        ("-4", "default via 192.0.2.2 table 100 proto static dev eth0"),
        ("-6", "2001:db8:1::/48 via 2001:db8::1 metric 1024 pref medium dev eth0"),
    ),
    "0",
)


@pytest.fixture(autouse=True)
def setting(monkeypatch, tmp_path):
    """The kernel's setting for IPv6 addresses, of eth0 alone."""
    monkeypatch.setattr(ports, "KEEP", str(tmp_path / "{}"))
    (tmp_path / "eth0").write_text("0\n")


def host(link=UP, routes=None, may_set=(0, "", "")):
    def ip(words):
        if "route" in words:
            return 0, (routes or ROUTES)[words[1]], ""
        return may_set if "set" in words else (0, link, "")

    return Programs({"ip": ip})


def test_what_comes_back_by_itself_is_left_to_who_brings_it():
    assert ports.read("eth0", host().run) == KEPT


def test_nothing_is_set_but_up_what_is_up():
    programs = host()
    ports.read("eth0", programs.run)
    assert [command for command in programs.ran if " show " not in command] == ["ip link set dev eth0 up"]


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"link": "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536"}, "eth0 is not a port: no part of it can go down."),
        ({"link": "2: eth0: <NO-CARRIER,BROADCAST,UP> mtu 1500"}, "eth0 has no link: its port cannot go down."),
        (
            {"may_set": (2, "", "RTNETLINK answers: Operation not permitted\n")},
            "There is no permission to set eth0 down: RTNETLINK answers: Operation not permitted",
        ),
        (
            {"routes": {**ROUTES, "-4": "default proto static \\ nexthop via 192.0.2.1 weight 1\n"}},
            "eth0 has a route that a drill cannot put back: default proto static \\ nexthop via 192.0.2.1 weight 1.",
        ),
    ],
    ids=["loopback", "no link", "no right", "several next hops"],
)
def test_what_cannot_go_down_and_come_back_is_refused(given, sentence):
    with pytest.raises(ports.Refused) as refused:
        ports.read("eth0", host(**given).run)
    assert str(refused.value) == sentence


def test_an_interface_that_is_not_there_is_refused():
    programs = Programs({"ip": (1, "", 'Device "eth9" does not exist.\n')})
    with pytest.raises(ports.Refused, match=r"^There is no interface eth9 on this host\.$"):
        ports.read("eth9", programs.run)


def test_the_addresses_are_kept_and_the_routes_come_after_the_link():
    script = ports.down(KEPT)
    keep = ports.KEEP.format("eth0")
    assert script.inject == f"echo 1 > {keep}; ip link set dev eth0 down"
    assert script.revert == "; ".join(
        [
            "ip link set dev eth0 up",
            "timeout 15 sh -c 'until grep -q 1 /sys/class/net/eth0/carrier; do sleep 0.1; done'",
            *(f"ip {family} route replace {route}" for family, route in KEPT.routes),
            f"echo 0 > {keep}",
        ]
    )


def test_where_there_is_no_ipv6_nothing_of_it_is_set():
    bare = ports.Port("eth0")
    assert "/proc" not in (ports.down(bare).inject + ports.down(bare).revert).replace("/sys/class", "")


def test_a_link_flaps_until_what_flaps_it_is_stopped_and_ends_up():
    script = ports.flapping(ports.Port("eth0"), 0.1, "inject.service")
    turns = "ip link set dev eth0 down; sleep 0.1; ip link set dev eth0 up; sleep 0.1"
    assert script.inject == f"while :; do {turns}; done"
    assert script.revert == f"systemctl stop inject.service; {ports.back(ports.Port('eth0'))}"
