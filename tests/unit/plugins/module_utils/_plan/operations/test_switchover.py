# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose router stops and starts in a switchover, and what is refused."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.steps import Steps, elsewhere, measured, missed
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.switchover import steps
from support.members import DOWN, RECORD, SECOND, VIP, firewall, host, instance, pair, seen

HOLDS = seen(1, [VIP])
HELD_BACK = pair(seen(1, held_back=RECORD), seen(2, [VIP]))
THREE = ["lb1", "lb2", "lb3"]


def lax(number, holds=()):
    """A member that does not preempt."""
    return seen(number, holds, instances=[instance(VIP, 255 - number, preempt=False)])


def test_with_preemption_the_first_member_is_held_back():
    found = steps(pair(HOLDS, seen(2)))
    assert (found.faults, found.stop, found.hold, found.start) == ([], ["lb1"], ["lb1"], [])
    assert found.expected == {"lb2": [VIP]}
    assert found.lines == [
        f"{VIP} moves from lb1 to lb2.",
        "lb1 is held back: with preemption it would take the VIPs at once, so its router stays stopped. "
        "It starts on its own once nobody has held one of its VIPs for a while. -e switchover_back=true, the next run "
        "of onprem.lb.site, or a reboot of it ends that.",
    ]


def test_without_preemption_the_holder_becomes_backup():
    found = steps(pair(lax(1, [VIP]), lax(2)))
    assert (found.stop, found.hold) == (["lb1"], [])
    assert found.lines[-1] == "The router of lb1 starts again, and lb2 keeps the VIPs."


def test_without_preemption_the_vip_goes_back_the_same_way():
    found = steps(pair(lax(1), lax(2, [VIP])), "lb1")
    assert (found.stop, found.hold, found.expected) == (["lb2"], [], {"lb1": [VIP]})


@pytest.mark.parametrize("to", ["", "lb2"])
def test_a_second_run_finds_nothing_to_do(to):
    found = steps(HELD_BACK, to)
    assert found == Steps([], [f"lb2 already holds {VIP}: nothing to do."])


def test_the_way_back_starts_the_router_that_was_stopped():
    found = steps(HELD_BACK, back=True)
    assert (found.faults, found.stop, found.start, found.expected) == ([], [], ["lb1"], {"lb1": [VIP]})
    assert found.lines == ["The router of lb1 starts again.", f"{VIP} moves from lb2 to lb1."]


def test_a_switchover_to_the_member_that_is_held_back_is_the_way_back():
    found = steps(HELD_BACK, "lb1")
    assert (found.stop, found.hold, found.start, found.expected) == ([], [], ["lb1"], {"lb1": [VIP]})


def test_nothing_is_held_back_is_said():
    found = steps(pair(HOLDS, seen(2)), back=True)
    assert found == Steps([], ["No member of lb1, lb2 is held back: nothing to do."])


def three(*members):
    return [host(name, each, THREE) for name, each in zip(THREE, members)]


def test_of_three_every_member_before_the_target_is_held_back():
    found = steps(three(HOLDS, seen(2), seen(3)), "lb3")
    assert (found.stop, found.hold, found.expected) == (["lb1", "lb2"], ["lb1", "lb2"], {"lb3": [VIP]})


def test_who_would_take_over_from_another_holder_stops_before_it():
    """lb1 is next for what lb2 holds: it would hold that for a moment on the way to lb3."""
    both = [[instance(VIP, 255 - number), instance(SECOND, 255 - number)] for number in (1, 2, 3)]
    given = [seen(number, held, instances=own) for number, held, own in zip((1, 2, 3), ([VIP], [SECOND], []), both)]
    named = [host(name, each, THREE, vips=[VIP, SECOND]) for name, each in zip(THREE, given)]
    assert steps(named, "lb3").delays == {"lb1": 1, "lb2": 1}, "each is next for the other one"
    given[2]["instances"][0]["priority"] = 254
    assert steps(named, "lb3").delays == {"lb1": 1, "lb2": 2}


def test_a_backup_stops_before_the_holder():
    assert steps(three(HOLDS, seen(2), seen(3)), "lb3").delays == {"lb1": 1, "lb2": 0}


def test_of_three_the_last_stays_a_backup():
    found = steps(three(HOLDS, seen(2), seen(3)))
    assert (found.stop, found.hold, found.expected) == (["lb1"], ["lb1"], {"lb2": [VIP]})


def equals(number, holds=(), vips=(VIP,)):
    """A member whose priority is that of all others, as in a cluster that copies OpenShift."""
    return seen(number, holds, instances=[instance(vip, 40) for vip in vips])


@pytest.mark.parametrize("to, others", [("lb2", ["lb1", "lb3"]), ("lb3", ["lb1", "lb2"])])
def test_of_members_with_equal_priorities_the_named_one_takes_over(to, others):
    """Whoever's Skew_Time ends first would take the VIP, and keep it: none preempts another one."""
    found = steps(three(equals(1, [VIP]), equals(2), equals(3)), to)
    assert (found.stop, found.hold, found.expected) == (others, [], {to: [VIP]})
    assert found.lines[0] == f"{VIP} moves from lb1 to {to}."


def test_an_equal_one_goes_on_where_it_carries_what_the_named_one_does_not():
    found = steps(three(equals(1, [VIP, SECOND], [VIP, SECOND]), equals(2, (), [VIP, SECOND]), equals(3)), "lb3")
    assert (found.stop, found.hold) == (["lb1"], [])


def test_of_members_with_equal_priorities_none_takes_a_vip_from_another_one():
    """Of lb1, which comes first by its name, nothing is expected: lb2 goes on with the other VIP."""
    both = (VIP, SECOND)
    found = steps(three(equals(1, (), [SECOND]), equals(2, [SECOND], both), equals(3, [VIP], [VIP])), "lb2")
    assert (found.stop, found.expected) == (["lb3"], {"lb2": [SECOND, VIP]})


def test_who_no_longer_outranks_the_target_takes_part_again():
    found = steps(three(seen(1, held_back=RECORD), seen(2, held_back=RECORD), seen(3, [VIP])), "lb2")
    assert (found.stop, found.start, found.expected) == ([], ["lb2"], {"lb2": [VIP]})


BROKEN = "haproxy.service does not run."


def test_the_way_back_goes_with_whoever_can_be_reached():
    """The holder has died: nobody serves, and the others are held back."""
    given = three(seen(1, held_back=RECORD), seen(2, held_back=RECORD), DOWN)
    found = steps(given, back=True)
    assert (found.faults, found.start, found.expected) == ([], ["lb1", "lb2"], {"lb1": [VIP], "lb2": []})
    assert [each["name"] for each in found.probe["members"]] == ["lb1", "lb2"]
    assert found.lines[-1] == (
        "lb3 cannot be reached: ssh: connect to host: No route to host. If it is held back, it stays so."
    )
    left_out = steps(given[:2], back=True)
    assert (left_out.faults, left_out.start) == ([], ["lb1", "lb2"])
    assert left_out.lines[-1] == "lb3 is outside --limit. If it is held back, it stays so."


def test_on_the_way_back_one_that_could_not_take_over_keeps_no_other_one_back():
    given = three(seen(1, held_back=RECORD, unable=[BROKEN]), seen(2, held_back=RECORD), DOWN)
    found = steps(given, back=True)
    assert (found.faults, found.start, found.expected) == ([], ["lb2"], {"lb2": [VIP]})
    assert f"lb1 could not take over: {BROKEN} It stays held back." in found.lines


def test_the_way_back_waits_for_a_vip_that_nobody_holds_whoever_preempts():
    given = pair(lax(1), lax(2))
    given[0]["seen"]["held_back"] = RECORD
    assert steps(given, back=True).expected == {"lb1": [VIP]}


def test_a_way_back_with_nobody_left_is_refused_with_each_reason():
    found = steps(three(seen(1, held_back=RECORD, unable=[BROKEN]), seen(2, [VIP]), DOWN), back=True)
    assert (found.faults, found.start) == ([f"lb1 could not take over: {BROKEN}"], [])


NO_START = "onprem-lb-proxy.service would not start again: services (web).check.ca is '/ca.pem': it cannot be read."


def test_a_member_that_serves_and_would_not_start_again_takes_over_and_that_is_said():
    found = steps(pair(HOLDS, seen(2, would_not_start=[NO_START])))
    assert (found.faults, found.expected) == ([], {"lb2": [VIP]})
    assert found.lines[-1] == f"lb2 takes over as it runs now. {NO_START}"


UNLOADED = "keepalived.service has not loaded /etc/keepalived/keepalived.conf since it changed."


@pytest.mark.parametrize(
    "given, to, sentence",
    [
        (pair(HOLDS, seen(2)), "lb9", "switchover_to is 'lb9', which is not a member: choose one of lb1, lb2."),
        (
            [host("lb1", HOLDS, ["lb1"])],
            "",
            "lb1 is the only member: there is none to hand the VIPs over to.",
        ),
        (
            pair(seen(1, held_back=RECORD, would_not_start=[NO_START]), seen(2, [VIP])),
            "lb1",
            f"lb1 could not take over: {NO_START}",
        ),
        (
            pair(HOLDS, seen(2, unable=["haproxy.service does not run."])),
            "lb2",
            "lb2 could not take over: haproxy.service does not run.",
        ),
        (
            pair(seen(1, held_back=RECORD, unable=["haproxy.service does not run."]), seen(2, [VIP])),
            "lb1",
            "lb1 could not take over: haproxy.service does not run.",
        ),
        (
            pair(HOLDS, seen(2, router="keepalived.service", stale=["haproxy.service has not.", UNLOADED])),
            "lb2",
            f"lb2 could not take over: {UNLOADED}",
        ),
        (
            pair(HOLDS, DOWN),
            "",
            "A switchover needs all members. lb2 cannot be reached: ssh: connect to host: No route to host.",
        ),
        (
            pair(HOLDS, seen(2))[:1],
            "",
            "lb2 is outside --limit, and a switchover needs all members: run it without --limit.",
        ),
        (
            pair(HOLDS, seen(2, instances=[])),
            "lb2",
            f"lb2 cannot take over {VIP}, which its configuration lacks.",
        ),
        (
            pair(seen(1, instances=[]), seen(2, instances=[])),
            "",
            "lb1, lb2 have no VIP: run onprem.lb.site first.",
        ),
        (
            [*pair(HOLDS, seen(2)), host("lb3", seen(3, [SECOND]), ["lb3", "lb4"])],
            "",
            "There are several pairs or clusters (lb1, lb2 and lb3, lb4): name the member that takes over with "
            "-e switchover_to.",
        ),
    ],
    ids=[
        "unknown",
        "alone",
        "would not start again",
        "unable",
        "held back and unable",
        "not loaded",
        "down",
        "limit",
        "lacks it",
        "not set up",
        "pairs",
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(given, to, sentence):
    assert steps(given, to) == Steps([sentence])


def test_both_directions_at_once_are_refused():
    (fault,) = steps(HELD_BACK, "lb2", back=True).faults
    assert fault == "switchover_back and switchover_to (lb2) are both set: leave one of them out."


def test_a_member_that_could_not_take_over_is_not_given_the_vips_back():
    given = pair(seen(1, held_back=RECORD, unable=["haproxy.service does not run."]), seen(2, [VIP]))
    assert steps(given, back=True).faults == ["lb1 could not take over: haproxy.service does not run."]


def crossed():
    """Two VIPs that prefer different members."""
    first = seen(1, [VIP], instances=[instance(VIP, 254), instance(SECOND, 253)])
    second = seen(2, [SECOND], instances=[instance(VIP, 253), instance(SECOND, 254)])
    return pair(first, second, vips=[VIP, SECOND])


def test_vips_that_prefer_different_members_need_a_name():
    assert steps(crossed()).faults == [
        "The VIPs prefer different members: name the one that takes over with -e switchover_to."
    ]
    found = steps(crossed(), "lb2")
    assert (found.stop, found.hold, found.expected) == (["lb1"], ["lb1"], {"lb2": [VIP, SECOND]})
    assert found.lines[0] == f"{VIP} moves from lb1 to lb2." and SECOND not in "".join(found.lines)


INGRESS, SHARD = "192.0.2.30", "192.0.2.31"
NODES = ["m1", "m2", "w1", "w2"]


def cluster(**changed):
    """Two masters with the API's VIP, two workers with that of ingress, and a shard's that all of them carry."""
    shard = [instance(SHARD, 255 - number) for number in range(1, 5)]
    members = {
        "m1": seen(1, [VIP, SHARD], instances=[instance(VIP, 254), shard[0]]),
        "m2": seen(2, instances=[instance(VIP, 253), shard[1]]),
        "w1": seen(3, [INGRESS], instances=[instance(INGRESS, 254), shard[2]]),
        "w2": seen(4, instances=[instance(INGRESS, 253), shard[3]]),
    }
    return [host(name, {**each, **changed.get(name, {})}, NODES) for name, each in members.items()]


def test_in_a_cluster_a_member_takes_the_vips_that_it_carries():
    found = steps(cluster(), "m2")
    assert (found.faults, found.stop, found.hold) == ([], ["m1"], ["m1"])
    assert found.expected == {"m2": [VIP, SHARD]}
    assert found.lines[:3] == [
        f"{VIP} moves from m1 to m2.",
        f"{SHARD} moves from m1 to m2.",
        f"{INGRESS} stays with w1: m2 does not carry it.",
    ]


def test_what_would_leave_a_vip_without_a_holder_is_refused():
    """For the shard's VIP both masters would have to stop, which alone carry the API's."""
    assert steps(cluster(), "w2") == Steps(
        [f"Without m1, m2, w1, whose routers would stop, nobody could hold {VIP}: choose another member."]
    )


def test_a_vip_moves_to_one_that_could_hold_it():
    shards = {name: [instance(INGRESS, 254 - at)] for at, name in enumerate(["w1", "w2"])}
    both = {"instances": [instance(VIP, 252), instance(INGRESS, 200)]}
    found = steps(
        cluster(
            m1={"instances": [instance(VIP, 254), instance(INGRESS, 250)], "held": cluster()[0]["seen"]["held"][:1]},
            m2={"instances": [instance(VIP, 253)], "unable": ["haproxy.service does not run."]},
            w1={"instances": shards["w1"]},
            w2=both,
        ),
        "w2",
    )
    assert (found.faults, found.stop) == ([], ["m1", "m2", "w1"])
    assert found.expected == {"w2": [VIP, INGRESS]}


def test_a_default_needs_vips_that_agree():
    assert steps(cluster()).faults == [
        "The VIPs prefer different members: name the one that takes over with -e switchover_to."
    ]


def test_other_vips_of_a_member_that_yields_are_expected_on_others():
    given = cluster(
        m1={"instances": [instance(VIP, 254), instance(SHARD, 254)]},
        m2={"instances": [instance(VIP, 253)]},
        w1={"instances": [instance(INGRESS, 254), instance(SHARD, 252)]},
        w2={"instances": [instance(INGRESS, 253), instance(SHARD, 250)]},
    )
    found = steps(given, "m2")
    assert (found.expected, found.others) == ({"m2": [VIP], "w1": [SHARD]}, {"w2": [SHARD]})
    assert f"{SHARD} moves from m1 to w1." in found.lines


def test_what_a_held_back_member_gets_back_is_its_own():
    given = cluster(m1={"held_back": RECORD, "held": []}, m2={"held": cluster()[0]["seen"]["held"]})
    assert steps(given, back=True).expected == {"m1": [VIP, SHARD]}


def test_several_pairs_go_back_together():
    others = [host("lb3", seen(3, held_back=RECORD), ["lb3", "lb4"]), host("lb4", seen(4, [VIP]), ["lb3", "lb4"])]
    found = steps([*HELD_BACK, *others], back=True)
    assert found.start == ["lb1", "lb3"] and set(found.expected) == {"lb1", "lb3"}


MOVE = steps(pair(HOLDS, seen(2))).probe
MEASURED = {
    "holder_before": "lb1",
    "holder_after": "lb2",
    "tried": 900,
    "failed_attempts": 2,
    "takeover": {"outage_ms": 9.8, "response_gap_ms": 14.2},
}


def test_the_move_of_the_first_vip_is_measured_at_a_port_of_the_balancer():
    macs = [{"name": "lb1", "macs": ["02:00:00:00:00:01"]}, {"name": "lb2", "macs": ["02:00:00:00:00:02"]}]
    wanted = {"address": VIP, "port": 443, "members": macs, "holder": "lb2"}
    assert steps(pair(HOLDS, seen(2))).probe == wanted
    assert steps(pair(HOLDS, seen(2, ports_of_vips={VIP: [], SECOND: [80]}))).probe == {}


@pytest.mark.parametrize(
    "change, sentence",
    [
        (
            {},
            f"{VIP} was gone for 10 ms: of 900 connections, one every 5 ms, 2 failed, and for 14 ms at most none was "
            "answered.",
        ),
        ({"holder_after": "lb1"}, f"The probe did not see {VIP} move to lb2."),
        ({"holder_before": "lb2"}, f"{VIP} had moved before the probe began: nothing was measured."),
    ],
)
def test_only_a_move_that_was_seen_is_reported_as_measured(change, sentence):
    assert measured(MOVE, {**MEASURED, **change}) == sentence


VAIN = {"failed": True, "held": []}


@pytest.mark.parametrize(
    "ends, nobodys",
    [
        ({"lb2": VAIN, "lb3": {"held": [{"address": VIP}]}}, []),
        ({"lb2": VAIN, "lb3": VAIN}, [VIP]),
        ({"lb2": {"unreachable": True}, "lb3": VAIN}, [VIP]),
        ({"lb2": {"failed": True, "held": [{"address": VIP}]}, "lb3": VAIN}, []),
        ({"lb1": {}, "lb2": {"skipped": True}, "lb3": {"skipped": True}}, []),
    ],
    ids=["one has it", "nobody has it", "one is lost", "one lacks another VIP", "nobody waited"],
)
def test_a_vip_has_moved_once_one_of_those_that_might_take_it_holds_it(ends, nobodys):
    assert missed({"lb2": [VIP], "lb3": [VIP]}, ends) == nobodys


@pytest.mark.parametrize(
    "seen_there, said",
    [
        ({"lb3": {"held": [{"address": VIP}]}}, {VIP: f"{VIP} is with lb3, which advertised before lb2."}),
        ({"lb3": {"held": []}}, {}),
        ({"lb3": {"held": [{"address": SECOND}]}}, {}),  # a VIP of another member's
        ({"lb4": {"held": [{"address": VIP}]}}, {}),  # one that could not hold it
        ({"lb3": {"skipped": True}}, {}),
        ({"lb3": {"unreachable": True}}, {}),
        ({}, {}),
    ],
)
def test_a_vip_has_moved_also_where_one_of_a_lower_priority_advertised_first(seen_there, said):
    done = Steps([], expected={"lb2": [VIP, SECOND]}, others={"lb3": [VIP]})._asdict()
    assert elsewhere(done, seen_there) == said


DEAF = seen(2, **firewall(vrrp=["192.0.2.1"]))
SAID = "could not take over: Its firewall (chain inet filter input) lets in no VRRP from 192.0.2.1:"


@pytest.mark.parametrize(
    "variable, mend", [("", "onprem.lb.site opens it again."), ("pair_firewall", "open it, as no run does")]
)
def test_a_member_whose_firewall_refuses_the_others_routers_does_not_take_over(variable, mend):
    """It hears nobody, so it would hold the VIPs beside the others, as soon as these run again."""
    given = [{**each, "left_to_user": variable} for each in pair(HOLDS, DEAF)]
    assert steps(given).faults[0].startswith(f"lb2 {SAID} {mend}") and steps(given).stop == []


def test_neither_does_one_start_again_that_was_held_back():
    held = seen(1, held_back=RECORD, **firewall(vrrp=["192.0.2.2"]))
    for found in (steps(pair(held, seen(2, [VIP])), back=True), steps(pair(held, seen(2, [VIP])), "lb1")):
        assert "no VRRP from 192.0.2.2" in found.faults[0] and found.start == []


def test_what_a_firewall_refuses_clients_or_what_nobody_knows_of_it_is_left_to_the_status():
    for found in ({"closed": [[VIP, 443]], "open": []}, {"unknown": "nft says: no"}):
        assert steps(pair(HOLDS, seen(2, **firewall(**found)))) == steps(pair(HOLDS, seen(2)))
