# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which member of a pair is maintained when, how it is drained, and what proves it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.maintenance import (
    Plan,
    drain,
    give_back,
    plan,
    stopped,
    unproved,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations.steps import Steps
from ansible_collections.onprem.lb.plugins.module_utils._shared.held_back import PATHS
from support.members import DOWN, RECORD, VIP, firewall, host, instance, pair, seen

WORK = "it reboots"
THREE = ["lb1", "lb2", "lb3"]
DEAD = ["haproxy.service does not run."]
HOLDS, HOLDS_SECOND = seen(1, [VIP]), seen(2, [VIP])


def three(*members):
    return [host(name, each, THREE) for name, each in zip(THREE, members)]


def record(during="maintenance", work=WORK, done=""):
    return {**RECORD, "during": during, "work": work, "done": done}


def test_the_backups_come_first_and_the_holder_last_whoever_it_is():
    assert plan(pair(HOLDS, seen(2)), [], WORK).order == ["lb2", "lb1"]
    assert plan(pair(seen(1), seen(2, [VIP])), [], WORK).order == ["lb1", "lb2"]
    assert plan(three(HOLDS, seen(2), seen(3)), [], WORK).order == ["lb3", "lb2", "lb1"]
    assert plan(three(seen(1), seen(2, [VIP]), seen(3)), [], WORK).order == ["lb3", "lb1", "lb2"]


def test_it_says_in_words_what_is_done():
    assert plan(pair(HOLDS, seen(2)), [], WORK).lines == [
        "lb2: its router stops; it reboots; once verified, it returns to service.",
        f"lb1: its router stops, {VIP} moves to lb2; it reboots; once verified, it returns to service.",
    ]


def test_members_that_are_not_asked_for_are_left_alone():
    found = plan(three(HOLDS, seen(2), seen(3)), ["lb2"], WORK)
    assert found.order == ["lb2"]
    assert found.lines[1:] == ["lb1 is left alone.", "lb3 is left alone."]


def test_a_pair_of_which_nobody_is_asked_for_is_none_of_its_business():
    others = [host("lb3", seen(3, unable=DEAD), ["lb3", "lb4"])]
    assert plan([*pair(HOLDS, seen(2)), *others], ["lb1"], WORK) == plan(pair(HOLDS, seen(2)), ["lb1"], WORK)


def test_the_same_maintenance_goes_on_with_the_member_that_it_holds_back():
    given = pair(seen(1, held_back=record(done="lb2")), seen(2, [VIP]))
    found = plan(given, [], WORK)
    assert (found.order, found.done) == (["lb1"], ["lb2"])
    assert found.lines == [
        "lb1: its router is stopped already; it reboots; once verified, it returns to service.",
        "lb2 is left alone: the run that stopped had finished it.",
    ]


@pytest.mark.parametrize("done, order", [("lb2", ["lb1"]), ("", ["lb1", "lb2"])])
def test_it_goes_on_also_where_the_member_that_is_held_back_is_still_broken(done, order):
    broken = seen(1, held_back=record(done=done), unable=DEAD, instances=[instance(VIP, 254, preempt=False)])
    given = pair(broken, seen(2, [VIP]))
    assert plan(given, [], WORK).order == order
    assert drain(given, "lb1", WORK, [done]).faults == []
    assert drain(given, "lb2", WORK, []).faults != []


def test_a_member_whose_router_is_stopped_takes_over_in_a_dry_run_once_it_is_proved():
    given = pair(seen(1, held_back=record(during="switchover")), HOLDS_SECOND)
    assert drain(given, "lb2", WORK, ["lb1"]).faults != []
    found = drain(given, "lb2", WORK, ["lb1"], ["lb1"])
    assert (found.faults, found.expected) == ([], {"lb1": [VIP]})


def test_another_maintenance_begins_with_the_member_that_is_held_back_and_skips_none():
    for held_back in (record(done="lb2", work="other"), record(during="switchover")):
        found = plan(pair(seen(1, held_back=held_back), seen(2, [VIP])), [], WORK)
        assert (found.order, found.done) == (["lb1", "lb2"], [])
        assert found.lines[1] == "lb2: its router stops; it reboots; once verified, it returns to service."


def test_who_takes_the_vip_back_comes_last_of_three():
    given = three(seen(1), seen(2, held_back=record()), seen(3, [VIP]))
    assert plan(given, [], WORK).order == ["lb2", "lb1", "lb3"]


HELD_BACK = seen(1, held_back=record())
UNLOADED = "keepalived.service runs with another file than /etc/keepalived/keepalived.conf."


@pytest.mark.parametrize(
    "given, wanted, sentence",
    [
        (
            pair(HOLDS, seen(2, unable=DEAD)),
            [],
            f"Without lb1 nobody could hold {VIP}, so it stays as it is: lb2 could not take over: {DEAD[0]} Fix that.",
        ),
        (
            pair(HOLDS, seen(2, instances=[])),
            ["lb1"],
            f"Without lb1 nobody could hold {VIP}, so it stays as it is: the configurations of the others lack it. "
            "Fix that.",
        ),
        (
            pair(HOLDS, seen(2, router="keepalived.service", stale=[UNLOADED])),
            ["lb1"],
            f"Without lb1 nobody could hold {VIP}, so it stays as it is: {UNLOADED} Fix that.",
        ),
        (
            pair(HELD_BACK, seen(2, [VIP])),
            ["lb2"],
            "lb1 could not take over: its router is stopped since 2026-01-31 12:00 UTC, when anna began its "
            "maintenance. onprem.lb.maintenance goes on with it, and onprem.lb.site brings it back at once. Do that "
            "first, or add it to maintenance_members.",
        ),
        (
            pair(HOLDS, DOWN),
            [],
            "A maintenance needs all members. lb2 cannot be reached: ssh: connect to host: No route to host.",
        ),
        (
            pair(HOLDS, seen(2))[:1],
            [],
            "lb2 is outside --limit, and a maintenance needs all members: run it without --limit.",
        ),
        (
            [host("lb1", HOLDS, ["lb1"])],
            [],
            "lb1 is the only member: there is none to hand the VIPs over to.",
        ),
        (
            pair(HOLDS, seen(2, [VIP])),
            ["lb2"],
            f"{VIP} has 2 holders: lb1, lb2. See 'Several members hold the VIP' in docs/symptoms.md.",
        ),
        (
            pair(seen(1), seen(2)),
            ["lb2"],
            f"{VIP} has no holder: see 'Nobody holds the VIP' in docs/symptoms.md.",
        ),
    ],
    ids=[
        "other unable",
        "other lacks it",
        "other has not loaded it",
        "other held back",
        "down",
        "limit",
        "alone",
        "split",
        "nobody",
    ],
)
def test_what_would_leave_nobody_is_refused_in_one_sentence_before_anything(given, wanted, sentence):
    assert plan(given, wanted, WORK).faults[-1:] == [sentence]
    assert plan(given, wanted, WORK)[1:] == Plan([])[1:]


def test_a_member_that_could_not_take_over_may_be_maintained_while_another_holds_the_vip():
    given = pair(HOLDS, seen(2, unable=DEAD))
    assert plan(given, ["lb2"], WORK).order == ["lb2"]
    assert plan(three(HOLDS, seen(2, unable=DEAD), seen(3)), [], WORK).order == ["lb3", "lb2", "lb1"]


def test_a_backup_is_drained_without_a_move():
    found = drain(pair(HOLDS, seen(2)), "lb2", WORK, [])
    assert (found.stop, found.hold, found.expected, found.probe, found.lasts) == (["lb2"], ["lb2"], {}, {}, True)
    assert (found.path, found.record["to"]) == (PATHS["maintenance"], "lb1")


def test_the_holder_hands_each_vip_to_the_next_that_could_take_over():
    found = drain(three(HOLDS, seen(2, unable=DEAD), seen(3)), "lb1", WORK, ["lb3", "lb2"])
    assert (found.stop, found.expected, found.probe["holder"]) == (["lb1"], {"lb3": [VIP]}, "lb3")
    assert found.lines[1] == f"{VIP} moves from lb1 to lb3."
    assert found.record == {"to": "lb3", "work": WORK, "done": "lb3,lb2"}


def test_any_that_could_hold_a_vip_may_have_it_once_its_holder_is_drained():
    found = drain(three(HOLDS, seen(2), seen(3)), "lb1", WORK, [])
    assert (found.expected, found.others) == ({"lb2": [VIP]}, {"lb3": [VIP]})
    found = drain(three(HOLDS, seen(2), seen(3, unable=DEAD)), "lb1", WORK, [])
    assert (found.expected, found.others) == ({"lb2": [VIP]}, {})


def equals(number, holds=()):
    """A member whose priority is that of all others, as in a cluster that copies OpenShift."""
    return seen(number, holds, instances=[instance(VIP, 40)])


def test_of_members_with_equal_priorities_any_takes_the_vip_over():
    """Nobody knows whose Skew_Time ends first, so the run waits for one of them, and measures nothing."""
    given = three(equals(1, [VIP]), equals(2), equals(3))
    found = drain(given, "lb1", WORK, [])
    assert (found.expected, found.probe) == ({"lb2": [VIP], "lb3": [VIP]}, {})
    assert found.lines[1] == f"{VIP} moves from lb1 to lb2 or lb3."
    assert f"{VIP} moves to lb2 or lb3;" in plan(given, [], WORK).lines[-1]


@pytest.mark.parametrize(
    "now, sentence",
    [
        (seen(2, unable=DEAD), "lb2 could not take over: "),
        (seen(2, [VIP]), f"{VIP} has 2 holders"),
        (seen(2, held_back=RECORD), "lb2 could not take over: its router is stopped since 2026-01-31 12:00 UTC"),
        (DOWN, "A maintenance needs all members. lb2 cannot be reached"),
    ],
)
def test_a_member_is_not_drained_once_the_others_have_failed(now, sentence):
    found = drain(pair(HOLDS, now), "lb1", WORK, [])
    assert sentence in found.faults[0] and found == Steps(found.faults)


@pytest.mark.parametrize("preempt, moves", [(True, [f"{VIP} moves from lb2 to lb1."]), (False, [])])
def test_a_member_takes_part_again_and_the_vip_returns_with_preemption_alone(preempt, moves):
    instances = [instance(VIP, 254, preempt)]
    found = give_back(pair(seen(1, held_back=record(), instances=instances), seen(2, [VIP])), "lb1")
    assert (found.start, found.stop, found.expected) == (["lb1"], [], {})
    assert found.lines == ["The router of lb1 starts again.", *moves]
    assert bool(found.probe) == preempt


READY = [{**instance(VIP, 253), "state": "Backup"}]


def now(**values):
    return {**seen(2, **values), "router": "keepalived.service"}


@pytest.mark.parametrize(
    "found, takes_part, reasons",
    [
        (now(), False, []),
        (now(instances=READY), True, []),
        (now(unable=DEAD), False, DEAD),
        (now(stale=["haproxy.service has not loaded its configuration since it changed."]), False, None),
        (now(ports=[]), False, ["Its balancer does not answer at port 443."]),
        (now(servers={"total": 2, "up": 0, "others": []}), False, ["Its balancer finds none of its servers up."]),
        (now(), True, [f"vip-{VIP} has not begun to take part in the election."]),
        (now(held_back=record(), instances=READY), True, ["keepalived.service does not run."]),
        ({"failed": True, "msg": "no python"}, False, ["lb2 cannot be read: no python."]),
    ],
)
def test_a_member_is_proved_once_nothing_is_wrong_with_it(found, takes_part, reasons):
    wrong = unproved(pair(HOLDS, seen(2)), "lb2", found, takes_part)
    assert wrong == (found["stale"] if reasons is None else reasons)


def test_a_member_that_was_broken_before_must_answer_where_the_others_do():
    given = pair(HOLDS, seen(2, unable=DEAD, ports=[]))
    assert unproved(given, "lb2", now(ports=[]), False) == ["Its balancer does not answer at port 443."]
    assert unproved(given, "lb2", now(), False) == []


def test_a_worker_has_no_balancer_that_must_answer_and_is_no_measure_for_the_masters():
    worker = {"balancer": "", "ports": [], "servers": {"total": 0, "up": 0, "others": []}}
    members = {"m1": HOLDS, "m2": seen(2, unable=DEAD, ports=[]), "w1": seen(3, **worker)}
    given = [host(name, each, list(members)) for name, each in members.items()]
    assert unproved(given, "w1", now(**worker), False) == []
    assert unproved(given, "m2", now(ports=[]), False) == ["Its balancer does not answer at port 443."]


def test_a_member_that_is_a_server_itself_must_be_up_again_there():
    own = {"service": "api", "name": "lb2", "state": "down"}
    down = {"total": 3, "up": 2, "others": [own, {"service": "api", "name": "lb1", "state": "down"}]}
    assert unproved(pair(HOLDS, seen(2)), "lb2", now(servers=down), False) == [
        "Its balancer finds api/lb2 down, which is this host."
    ]
    assert unproved(pair(HOLDS, seen(2, servers=down)), "lb2", now(servers=down), False) == []


def test_in_a_cluster_the_backups_of_every_vip_come_before_the_holders():
    ingress = "192.0.2.30"
    members = {
        "m1": seen(1, [VIP], instances=[instance(VIP, 254)]),
        "m2": seen(2, instances=[instance(VIP, 253)]),
        "w1": seen(3, instances=[instance(ingress, 254)]),
        "w2": seen(4, [ingress], instances=[instance(ingress, 253)]),
    }
    given = [host(name, each, list(members)) for name, each in members.items()]
    assert plan(given, [], WORK).order == ["m2", "w1", "w2", "m1"]


def test_it_says_what_is_held_back_and_how_to_go_on_even_without_the_member():
    (other,) = pair(seen(1), seen(2, [VIP]))[1:]
    assert stopped([other], "lb1", "Reboot it: no answer.", ["lb2"]) == (
        "The maintenance stops at lb1. Reboot it: no answer. lb1 is held back: its router stays stopped, and "
        "lb2 serves without it. Fix that and repeat the run, which continues with lb1 and leaves lb2 alone, which "
        "it has finished. onprem.lb.site brings it back at once."
    )
    assert "lb1 and lb2 serve without it" in stopped(three(HOLDS, seen(2), seen(3)), "lb3", "No.", [])


def test_nobody_is_drained_for_a_member_whose_firewall_refuses_the_others_routers():
    deaf = seen(2, **firewall(vrrp=["192.0.2.1"]))
    for found in (plan(pair(HOLDS, deaf), ["lb1"], WORK), drain(pair(HOLDS, deaf), "lb1", WORK, [])):
        assert "Without lb1 nobody could hold" in found.faults[0] and "no VRRP from 192.0.2.1" in found.faults[0]
    assert drain(three(HOLDS, deaf, seen(3)), "lb1", WORK, []).expected == {"lb3": [VIP]}


def test_one_whose_work_has_closed_its_firewall_to_routers_stays_held_back():
    given = pair(seen(1, held_back=record(), **firewall(vrrp=["192.0.2.2"])), seen(2, [VIP]))
    found = give_back(given, "lb1")
    assert "no VRRP from 192.0.2.2" in found.faults[0] and found.start == []
