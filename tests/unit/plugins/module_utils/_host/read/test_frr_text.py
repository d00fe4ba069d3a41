# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether FRR runs a file, what frr-reload must not undo, and which sessions a difference ends."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import frr_text
from support.rendering import frr

PEERS = [{"address": "192.0.2.1", "asn": 64601}, {"address": "2001:db8::1", "asn": 64602}]
GIVEN = {"asn": 64512, "peers": PEERS, "prefixes": ["198.51.100.10", "2001:db8:1::10"]}
OWN = ["192.0.2.11"]
HEAD = """Building configuration...

Current configuration:
!
frr version 8.4.4
frr defaults traditional
hostname lb1
log syslog informational
no ip forwarding
no ipv6 forwarding
service integrated-vtysh-config
!
"""


def text(**settings):
    return frr(OWN, **{**GIVEN, **settings})


def peer(at=0, **settings):
    return {"peers": [{**each, **(settings if number == at else {})} for number, each in enumerate(PEERS)]}


def running(**settings):
    """What FRR shows, in another order and with its own lines around it."""
    blocks = text(**settings).split("\n!\n")
    return HEAD + "\n!\n".join(reversed(blocks)) + "\nend\n"


def test_frr_runs_a_file_whatever_it_shows_around_it():
    assert frr_text.differences(text(), running()) == []


def test_what_it_lacks_and_what_it_has_beyond_is_named():
    assert frr_text.differences(text(**peer(hold_time=30)), running()) == [
        "lacks router bgp 64512 / neighbor 192.0.2.1 timers 10 30",
        "has router bgp 64512 / neighbor 192.0.2.1 timers 3 9",
    ]
    assert frr_text.differences(text(), HEAD + "router ospf\n network 10.0.0.0/8 area 0\nexit\n")[-2:] == [
        "has router ospf",
        "has router ospf / network 10.0.0.0/8 area 0",
    ]


def test_the_same_line_in_another_block_is_another_line():
    moved = running().replace(" address-family ipv6 unicast", " address-family ipv4 unicast")
    assert "lacks router bgp 64512 / address-family ipv6 unicast" in frr_text.differences(text(), moved)


def test_what_raw_lines_have_brought_is_theirs_but_no_list_or_map_of_the_role():
    extra = {"extra_lines": ["router ospf", " ospf router-id 1.1.1.1"]}
    assert frr_text.differences(text(**extra), running() + "router ospf\n ospf router-id 1.1.1.1\nexit\n") == []
    more = frr_text.differences(text(**extra), running(prefixes=[*GIVEN["prefixes"], "198.51.100.11"]))
    assert more == ["has ip prefix-list onprem-vips seq 3325256715 permit 198.51.100.11/32"]


def test_frr_reload_keeps_what_is_not_of_the_file():
    assert frr_text.carried(text(), running()) == ["hostname lb1", "no ip forwarding", "no ipv6 forwarding"]
    assert frr_text.carried(text() + "no ip forwarding\n", running()) == ["hostname lb1", "no ipv6 forwarding"]


FIRST, ALL = ["192.0.2.1"], ["192.0.2.1", "2001:db8::1"]
RESETS = {
    "nothing": ({}, []),
    "a VIP": ({"prefixes": ["198.51.100.10"]}, []),
    "communities": ({"communities": ["1:1"]}, []),
    "a graceful shutdown": ({"graceful_shutdown": True}, []),
    "BFD's times": ({"bfd": {"interval": 100}}, []),
    "times": (peer(hold_time=30, connect_time=5), []),
    "BFD": (peer(bfd=True), []),
    "a password": (peer(password="x"), FIRST),
    "hops": (peer(multihop=2), FIRST),
    "GTSM": (peer(ttl_security=1), FIRST),
    "a port": (peer(port=1179), FIRST),
    "its AS": (peer(asn=64603), FIRST),
    "its own address": (peer(local_address="192.0.2.11"), FIRST),
    "a peer less": ({"peers": PEERS[1:], "prefixes": ["2001:db8:1::10"]}, FIRST),
    "a peer more": ({"peers": [*PEERS, {"address": "192.0.2.2", "asn": 1}]}, []),
    "the AS": ({"asn": 64513}, ALL),
    "the router ID": ({"router_id": "192.0.2.12"}, ALL),
}


@pytest.mark.parametrize("name", RESETS)
def test_the_sessions_that_end_are_those_of_the_change(name):
    settings, ends = RESETS[name]
    assert frr_text.resets(text(**settings), running()) == ends


def test_bfd_that_is_switched_off_may_end_a_session_and_a_restart_ends_all():
    assert frr_text.resets(text(), running(**peer(bfd=True))) == FIRST
    assert frr_text.resets("", running()) == ALL


def test_of_an_unknown_line_it_is_assumed_that_it_ends_the_session():
    other = running().replace(
        " neighbor 192.0.2.1 remote-as", " neighbor 192.0.2.1 local-as 1\n neighbor 192.0.2.1 remote-as"
    )
    assert frr_text.resets(text(), other) == FIRST


def test_a_protocol_that_runs_without_a_file_is_named():
    ospf = HEAD + "router ospf\n ospf router-id 1.1.1.1\nexit\n"
    (sentence,) = frr_text.of_others(ospf, "log syslog\n", "/etc/frr/frr.conf")
    assert sentence.startswith("FRR runs `router ospf`, which /etc/frr/frr.conf does not have")
    assert frr_text.of_others(ospf, "router ospf\n", "/x") == []  # the file is foreign, and reported as such
    assert frr_text.of_others(running(), text(), "/x") == []
    assert frr_text.of_others("", "", "/x") == []
