# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What was heard, put together: routers, two Actives, strangers, the table."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core.packet import Advertisement, Discard
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrrp_routers
from hypothesis import given
from hypothesis import strategies as st

A, B, C = "192.0.2.1", "192.0.2.9", "192.0.2.10"
VIP = "192.0.2.100"
OURS, THEIRS = b"0a1b2c3d", b"secret!!"


def advertisement(priority=100, vrid=51, interval=1.0, addresses=(VIP,), auth_pass=b"", version=2):
    microseconds = int(interval * 1_000_000)
    return Advertisement(version, vrid, priority, microseconds, addresses, int(bool(auth_pass)), auth_pass, "rfc3768")


def heard(at, source=A, interface="eth0", own=False, destination="224.0.0.18", **said):
    mac = f"02:00:00:00:00:{int(source[-1], 16):02x}"
    return vrrp_routers.Observation(at, interface, mac, source, destination, advertisement(**said), own)


def segment(*messages):
    found = vrrp_routers.LinkView()
    for message in messages:
        found.add(message)
    return found


def routers(*messages):
    return segment(*messages).result(with_auth_pass=True)["routers"]


def test_a_router_is_what_its_advertisements_said_the_latest_counts():
    result = segment(heard(0.5, auth_pass=OURS), heard(1.5, priority=200, auth_pass=OURS)).result()
    assert result == {
        "routers": [
            {
                "interface": "eth0",
                "family": 4,
                "vrid": 51,
                "version": 2,
                "source": A,
                "mac": "02:00:00:00:00:01",
                "own": False,
                "destination": "224.0.0.18",
                "unicast": False,
                "priority": 200,
                "interval": 1.0,
                "addresses": [VIP],
                "auth_type": "simple",
                "checksum": "rfc3768",
                "seen": 2,
                "first": 0.5,
                "last": 1.5,
            }
        ],
        "discarded": {},
        "conflicts": [],
    }


def test_a_password_is_returned_on_request_only():
    assert "0a1b" not in str(segment(heard(0, auth_pass=OURS)).result())
    assert routers(heard(0, auth_pass=OURS))[0]["auth_pass"] == "0a1b2c3d"
    assert routers(heard(0, auth_pass=b"\xff1"))[0]["auth_pass"] == "\\xff1"
    assert (routers(heard(0))[0]["auth_pass"], routers(heard(0))[0]["auth_type"]) == ("", "none")


def test_a_router_that_authenticates_in_an_unknown_way_is_a_router_and_can_conflict():
    """Its VRID is taken, and whoever chooses another one must know."""
    said = advertisement()._replace(auth_type=254)
    message = Discard("authentication", "unknown authentication type 254 received for VRID 51", said)
    seen = segment(heard(0)._replace(message=message, source=B)).result()
    assert (seen["discarded"], seen["routers"][0]["auth_type"]) == ({}, "254")
    assert vrrp_routers.taken(seen["routers"])[0]["vrid"] == 51
    (conflict,) = vrrp_routers.conflicts(seen["routers"], [A], [VIP], [51], "secret")
    assert conflict.startswith(f"{B} already advertises VRID 51 on eth0 for our VIP {VIP} (priority 100): ")


def test_unicast_is_told_from_multicast_in_both_families():
    messages = [heard(0, destination=B), heard(0, "fe80::1", destination="ff02::12", version=3, interval=0.25)]
    assert [(r["family"], r["unicast"], r["interval"]) for r in routers(*messages)] == [
        (4, True, 1.0),
        (6, False, 0.25),
    ]


def test_routers_are_told_apart_by_link_family_vrid_and_source_and_sorted_by_these():
    messages = [
        heard(0, A, "eth1"),
        heard(0, B),
        heard(0, A, vrid=52),
        heard(0, "fe80::1", destination="ff02::12"),
        heard(0, A),
    ]
    found = [(r["interface"], r["family"], r["vrid"], r["source"]) for r in routers(*messages)]
    assert found == [
        ("eth0", 4, 51, A),
        ("eth0", 4, 51, B),
        ("eth0", 4, 52, A),
        ("eth0", 6, 51, "fe80::1"),
        ("eth1", 4, 51, A),
    ]
    assert segment(*messages[:1], *messages[2:]).result()["conflicts"] == []


def test_what_is_no_advertisement_is_counted_by_reason():
    def discard(source, reason, detail):
        return vrrp_routers.Observation(0, "eth0", "", source, "224.0.0.18", Discard(reason, detail))

    found = segment(discard(A, "length", "x"), discard(A, "carp", "one"), discard(B, "carp", "two")).result()
    assert list(found["discarded"].items()) == [
        ("carp", {"count": 2, "detail": "two", "source": B, "interface": "eth0"}),
        ("length", {"count": 1, "detail": "x", "source": A, "interface": "eth0"}),
    ]
    assert found["routers"] == []


def conflicts(*said):
    """Each is (source, when) or (source, when, priority)."""
    messages = [heard(at, source, priority=priority[0] if priority else 100) for source, at, *priority in said]
    return segment(*messages).result()["conflicts"]


TWO = [f"VRID 51 (IPv4) on eth0 has two Actives: {A} and {B}."]


@pytest.mark.parametrize(
    "said, found",
    [
        ([(A, 0), (B, 0.5), (A, 1), (B, 1.5)], TWO),
        ([(B, 0), (A, 0.5), (B, 1)], TWO),
        ([(A, 0), (B, 0), (A, 1)], TWO),
        # B gives up, but only after A was there.
        ([(B, 0), (A, 0.5), (B, 1), (B, 1.2, 0), (A, 1.5)], TWO),
        # Takeovers: A gives up, or falls silent, or is preempted.
        ([(A, 0), (A, 1), (A, 1.5, 0), (B, 1.6), (B, 2.6)], []),
        ([(A, 0), (A, 1), (B, 4.4), (B, 5.4)], []),
        ([(A, 0), (A, 1), (B, 1.4), (B, 2.4)], []),
        # The last one of A crosses the first one of B.
        ([(A, 0), (A, 1), (B, 1.99), (A, 2), (B, 2.99)], []),
        # And back: A gave up, or was silent for longer than it takes to be replaced.
        ([(A, 0), (A, 0.5, 0), (B, 0.6), (B, 1.6), (A, 2), (A, 3)], []),
        ([(A, 0), (B, 3.5), (B, 4.5), (A, 5), (A, 6)], []),
        # A single give-up is no Active.
        ([(A, 0), (B, 0.5, 0), (A, 1)], []),
        ([(B, 0.5, 0), (A, 0.6), (B, 0.7, 0), (A, 1.6), (A, 1.7, 0)], []),
    ],
)
def test_two_actives_are_those_of_which_the_first_is_heard_again_after_the_second(said, found):
    assert conflicts(*said) == found


def test_a_fast_router_that_falls_silent_is_replaced_sooner():
    fast = [heard(at, source, interval=0.1, version=3) for source, at in ((A, 0), (B, 0.5), (B, 0.6), (A, 0.9), (A, 1))]
    assert segment(*fast).result()["conflicts"] == []


def test_three_actives_are_named_and_a_fourth_that_came_later_is_not():
    late = "192.0.2.8"
    said = [(A, 0), (B, 0.2), (C, 0.4), (A, 1), (B, 1.2), (C, 1.4), (late, 1.5)]
    assert conflicts(*said) == [f"VRID 51 (IPv4) on eth0 has three Actives: {A} and {C} and {B}."]


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.floats(0, 0.9), st.integers(0, 2)), min_size=1))
def test_one_alone_is_never_two(said):
    assert conflicts(*[(A, at, priority) for _source, at, priority in said]) == []


@pytest.mark.parametrize(
    "said, sentence",
    [
        (
            {},
            f"{B} already advertises VRID 51 on eth0 for our VIP {VIP} (priority 100): add it to the inventory if it "
            "is a member, else choose another VIP and another VRID.",
        ),
        (
            {"auth_pass": OURS},
            f"{B} already advertises VRID 51 on eth0 for our VIP {VIP} (priority 100, with our password): it seems to "
            "be a member that the inventory lacks, add it there or stop it.",
        ),
        (
            {"auth_pass": THEIRS, "addresses": ("192.0.2.50", "192.0.2.51")},
            f"{B} already advertises VRID 51 on eth0 for 192.0.2.50, 192.0.2.51 (priority 100, with another password): "
            "it is not of this pair, choose another VRID.",
        ),
        (
            {"vrid": 52, "addresses": ("192.0.2.50", VIP)},
            f"{B} already advertises VRID 52 on eth0 for our VIP {VIP} (priority 100): choose another VIP, or stop it "
            "there.",
        ),
        ({"vrid": 52, "addresses": ("192.0.2.50",)}, None),
    ],
)
def test_a_conflicting_router_is_named_without_its_password(said, sentence):
    found = vrrp_routers.conflicts(routers(heard(0, B, **said)), [A], [f"{VIP}/24"], [51], OURS.decode() + "and more")
    assert found == ([sentence] if sentence else [])
    assert not any(secret.decode() in line for secret in (OURS, THEIRS) for line in found)


def test_members_are_no_strangers_however_their_addresses_are_written():
    said = routers(heard(0, A), heard(0, "fe80::1", destination="ff02::12", addresses=("fe80::64",)))
    assert vrrp_routers.conflicts(said, [f"{A}/24", "FE80:0::1%eth0"], [VIP], [51]) == []
    assert len(vrrp_routers.conflicts(said, [A], [VIP], [51])) == 1
    assert len(vrrp_routers.conflicts(said, ["", "x"], [VIP], [51])) == 2


def test_a_vrid_is_ones_own_in_its_family_and_on_its_link_only():
    said = routers(heard(0, B, addresses=("192.0.2.50",)))
    for elsewhere in ({"family": 6}, {"interface": "eth1"}, {"vrid": 52}):
        assert vrrp_routers.conflicts(said, [], [], [{"vrid": 51, **elsewhere}]) == []
    assert len(vrrp_routers.conflicts(said, [], [], [{"vrid": 51, "family": 4, "interface": "eth0"}])) == 1
    assert len(vrrp_routers.conflicts(said, [], [], [7, {"vrid": 51}])) == 1


def test_a_password_that_was_not_returned_is_not_compared():
    hidden = segment(heard(0, B, auth_pass=THEIRS)).result()["routers"]
    assert "password" not in vrrp_routers.conflicts(hidden, [], [VIP], [51], OURS.decode())[0]
    shown = routers(heard(0, B, auth_pass=THEIRS))
    assert "password" not in vrrp_routers.conflicts(shown, [], [VIP], [51], "")[0]


def test_what_two_members_heard_is_said_once():
    said = routers(heard(0, B))
    assert len(vrrp_routers.conflicts(said + said, [], [VIP], [51])) == 1


def test_strangers_are_what_the_choice_of_a_vrid_must_avoid():
    said = routers(heard(0, A), heard(0, B, vrid=52, addresses=(VIP, "192.0.2.101")))
    assert vrrp_routers.taken(vrrp_routers.foreign_routers(said, [A])) == [
        {"vrid": 52, "by": f"{B}, heard on eth0 for {VIP}, 192.0.2.101"}
    ]


def host(name, *messages):
    return {"name": name, "seen": segment(*messages).result()}


def test_the_survey_has_one_line_for_a_router_that_several_hosts_hear():
    lb1 = host("lb1", heard(0, A, own=True), heard(0, "fe80::9", destination="ff02::12", version=3, interval=0.5))
    lb2 = host("lb2", heard(0, A), heard(0, B, vrid=7, destination=C, auth_pass=OURS, addresses=(VIP, "192.0.2.101")))
    lines = vrrp_routers.survey([lb1, lb2])
    both = f"{VIP}, 192.0.2.101"
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "--" not in line] == [
        list(vrrp_routers.HEAD),
        ["7", "IPv4", B, "02:00:00:00:00:09", "2", "100", "1 s", f"to {C}", both, "simple", "lb2 eth0"],
        ["51", "IPv4", f"{A} (lb1)", "02:00:00:00:00:01", "2", "100", "1 s", "multicast", VIP, "none"]
        + ["lb1 eth0, lb2 eth0"],
        ["51", "IPv6", "fe80::9", "02:00:00:00:00:09", "3", "100", "0.5 s", "multicast", VIP, "none", "lb1 eth0"],
    ]
    bars = {tuple(at for at, char in enumerate(line) if char == "|") for line in lines}
    assert len(bars) == 1, "the columns stand below each other"


def test_of_members_that_announce_by_bgp_it_says_what_it_cannot_hear():
    first, second = host("lb1"), host("lb2")
    assert vrrp_routers.survey(iter([{**first, "reach": "vrrp"}, second])) == ["No VRRP router was heard."]
    assert vrrp_routers.survey(iter([{**first, "reach": "bgp"}, second])) == [
        "No VRRP router was heard.",
        f"{vrrp_routers.BGP_UNHEARD} (Of lb1.)",
    ]


def test_below_the_survey_stands_what_is_wrong_once_with_who_heard_it():
    fight = [heard(0, A), heard(0.5, B), heard(1, A)]
    carp = vrrp_routers.Observation(0, "eth0", "", C, "224.0.0.18", Discard("carp", "a CARP advertisement of VHID 1"))
    lines = vrrp_routers.survey([host("lb1", *fight), host("lb2", *fight, carp)])
    assert lines[4:] == [
        f"{TWO[0]} (Heard by lb1, lb2.)",
        f"No advertisement (carp), 1 times on eth0, lately from {C}: a CARP advertisement of VHID 1. (Heard by lb2.)",
    ]


def test_the_holder_is_named_whichever_host_is_read_first():
    lines = vrrp_routers.survey(
        [host("lb2", heard(0, A)), host("lb1", heard(0, A, own=True)), host("lb3", heard(0, A))]
    )
    assert f"{A} (lb1)" in lines[2]


def test_two_links_that_have_the_same_address_are_two_lines():
    elsewhere = heard(0, "fe80::1", destination="ff02::12")._replace(mac="02:00:00:00:00:99")
    lines = vrrp_routers.survey([host("lb1", heard(0, "fe80::1", destination="ff02::12")), host("lb2", elsewhere)])
    assert len(lines) == 4


def test_a_silent_link_is_said():
    assert vrrp_routers.survey([host("lb1"), host("lb2")]) == ["No VRRP router was heard."]
