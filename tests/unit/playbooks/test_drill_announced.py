# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role drill where BGP carries the VIPs, played against recorded results: nothing is done to the last one."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from support import members
from support.drills import simulated
from support.plans.racks import VIP, plan, racks, router
from support.recorded_hosts import locked
from support.recorded_plays import run, tasks_of

HOSTS = {"probe": {"client": {}}, "pair": {"lb1": {}, "lb2": {}}}
SEEN = {
    **simulated()[-1]["seen"],
    "holders_known": False,
    "holder_before": None,
    "holder_after": None,
    "timeline": [],
    "router": "10.9.0.1",
    "reason": "it is behind the router 10.9.0.1.",
}
ARMED = {"injected_at": "2026-01-31T12:00:02+00:00", "reverted_at": "2026-01-31T12:00:09+00:00"}


def announcer(call, **values):
    return members.announcer(int(call.on[-1]), {VIP: "serves"}, held=[{"address": VIP, "seconds": 9}], **values)


def drilled(event="path_withdrawn", answers=None, **variables):
    given = racks()
    facts = {
        each["name"]: {
            "__layout_plans": {"faults": [], "plans": [as_data(plan(given))]},
            "__layout_member": {**each, "timeouts": {}},
        }
        for each in given
    }
    usual = {"member_lock": locked, "vip_probe": SEEN, "member_info": announcer, "drill_event": ARMED}
    wanted = {"drill_events": [event], "drill_history": "", "drill_report": "", "drill_html": "", **variables}
    return run(tasks_of("drill", hosts="probe"), HOSTS, {**usual, **(answers or {})}, facts=facts, **wanted)


def injected(play):
    return [f"{call.on} {call.given['event']}" for call in play.of("drill_event") if not call.check]


def done(play):
    """Return what was done once the members were locked, without what only repeats itself."""
    found = [call.module for call in play.of("drill_event", "vip_probe", "member_info", "wait_for", "member_lock")]
    found = found[found.index("member_lock") :]
    return [name for at, name in enumerate(found) if found[at - 1] != name]


def test_the_event_is_on_the_member_of_the_forecast_once_all_announce_and_they_are_asked_again_after_it():
    play = drilled()
    assert play.code == 0 and injected(play) == ["lb1 path_withdrawn"]
    between = ["member_info", "vip_probe", "drill_event", "vip_probe", "member_info"]
    assert done(play)[: 1 + len(between)] == ["member_lock", *between]
    assert "new ones failed (plan)" in str(play.said)


def test_of_a_path_that_comes_back_the_return_is_measured():
    play = drilled("path_back")
    between = ["member_info", "vip_probe", "drill_event", "wait_for", "vip_probe", "member_info"]
    assert done(play)[1 : 1 + len(between)] == between


def test_the_router_that_is_gone_is_named():
    play = drilled("router_gone")
    assert {call.given["router"] for call in play.of("drill_event")} == {router(1)}
    assert {"router" in call.given for call in drilled().of("drill_event")} == {False}


def lacking(seen, name="lb2"):
    return lambda call: seen if call.on == name else announcer(call)


@pytest.mark.parametrize("name", ["lb1", "lb2"])
@pytest.mark.parametrize(
    "seen, said",
    [
        ({"unreachable": True, "msg": "no route"}, "cannot be reached: no route."),
        ({"failed": True, "msg": "no room"}, "cannot be read: no room."),
        (members.announcer(2, {VIP: "failed"}), f"does not announce {VIP}:"),
        (
            members.announcer(2, sessions=[members.session("Active")], held=[{"address": VIP, "seconds": 1}]),
            "No session is established (192.0.2.1 Active).",
        ),
        (
            members.announcer(
                2, sessions_known=False, silent="FRR hangs.", sessions=[], held=[{"address": VIP, "seconds": 1}]
            ),
            "FRR hangs.",
        ),
        (
            members.announcer(
                2,
                sessions=[members.session(), members.session("Active", "192.0.2.9")],
                held=[{"address": VIP, "seconds": 1}],
            ),
            f"does not announce {VIP} to 192.0.2.9 (Active), whose clients may have no other path.",
        ),
        (
            members.announcer(2, drained=True, held=[{"address": VIP, "seconds": 1}]),
            f"announces {VIP} as the last choice: FRR drains it",
        ),
        (members.seen(2, [VIP]), f"does not announce {VIP}:"),  # which VRRP has set up
    ],
)
def test_while_one_does_not_announce_or_nobody_knows_nothing_is_done_to_any(seen, said, name):
    play = drilled(answers={"member_info": lacking(seen, name)})
    assert play.code == 2 and injected(play) == []
    assert f"{name} " in str(play.faults()) and said in str(play.faults())
    assert sorted(f"{call}" for call in play.of("member_lock"))[-1].endswith("absent")


def test_one_that_is_late_is_waited_for():
    left = [12]

    def late(call):
        left[0] -= call.on == "lb2"
        return announcer(call) if left[0] <= 0 or call.on == "lb1" else members.announcer(2, {VIP: "failed"})

    play = drilled(answers={"member_info": late})
    assert play.code == 0 and injected(play) == ["lb1 path_withdrawn"]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("seen", [{"router": "", "reason": ""}, {"router": "", "reason": "This host has it."}])
def test_a_probe_on_the_members_own_link_is_refused_before_anything_is_locked(seen, check):
    play = drilled(answers={"vip_probe": {**SEEN, **seen}}, check=check)
    assert play.code == 2 and play.of("member_lock") == [] and injected(play) == []
    assert f"The probe does not reach {VIP} through a router" in str(play.faults())


def test_what_nobody_can_spare_is_refused_before_a_member_is_asked():
    play = drilled("server_cut")
    assert play.code == 2 and "server_cut is not for 203.0.113.10: all members that announce it" in str(play.faults())
    assert play.of("member_lock", "drill_event") == []
