# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forecast is right: real keepalived, given the same plans, does what it says.

Some plans are played at the same time, each on a link of its own, because nearly all of it is waiting; the tests then
read what was recorded. They are so few because the forecast's outage is a bound for hosts that are not busy. No play is
repeated.
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair, planner
from support.netns.keepaliveds import EVENTS, Cluster
from support.netns.links import skip_reason
from support.netns.recorder import View, use_realtime_priority
from support.plans.pairs import member
from support.scope import FULL

pytestmark = pytest.mark.timed
AT_ONCE = 4
VIP, VIP2 = "192.0.2.10", "192.0.2.11"
EACH = [[(event, "lb1")] for event in EVENTS]


class Case(NamedTuple):
    settings: Dict[str, Any]
    members: int = 2
    # Failures come one after the other, and each ends. In one list they come on top of each other; the last ends first.
    script: List[List[Tuple[str, str]]] = EACH
    races: bool = False  # who is first when all start together is left to chance
    refused: Optional[Dict[str, Any]] = None  # then this is the line that the forecast would have written

    def hosts(self):
        return [member(number, **self.settings) for number in range(1, self.members + 1)]

    def plan(self):
        if self.refused:
            return planner.draft(pair.LAYOUT, self.hosts())._replace(outages=[self.refused])
        return pair.plan(self.hosts())


def never_moves(event, vip):
    line = dict.fromkeys(("member", "before", "after", "back"), "lb1")
    return {"event": event, "vip": vip, **line, "outage_ms": math.inf, "back_ms": math.inf}


TIE = {"priorities": [100, 98], "track_weight": 2, "track_events": False, "track_interval": 1}
CASES = {
    "events, FAULT": Case({}),
    "polled, FAULT": Case({"priorities": [100, 98], "track_events": False, "track_interval": 1}),
    "polled, weight 4": Case({**TIE, "track_weight": 4}),
    "polled, weight 2, a tie": Case(TIE, script=[EACH[0]], refused=never_moves("haproxy_killed", VIP)),
    "no preemption": Case({"preempt": False}, races=True),
    "equal priorities": Case({"priorities": [100, 100]}, script=[[(event, "lb2")] for event in EVENTS], races=True),
    "preemption delayed": Case({"preempt_delay": 2}),
    "version 3, 0.1 s": Case({"vrrp_version": 3, "advert_interval": 0.1}),
    "multicast": Case({"multicast": True}),
    "IPv6": Case({"vips": ["2001:db8::10"]}),
    "three members": Case({"vips": [VIP, VIP2]}, 3, [*EACH, *([(event, "lb2")] for event in EVENTS)]),
    "two failures": Case(
        {"vips": [VIP, VIP2]},
        3,
        [
            [("haproxy_killed", "lb1"), ("keepalived_stopped", "lb2")],
            [("host_cut", "lb1"), ("haproxy_killed", "lb2")],
            [("keepalived_stopped", "lb2"), ("host_cut", "lb3")],
        ],
    ),
}
# The events of all, polling, and what differs most from the rest.
QUICK = ("three members", "polled, weight 4", "polled, weight 2, a tie", "no preemption")
PLAYED = CASES if FULL else {name: CASES[name] for name in QUICK}


class Outcome(NamedTuple):
    """Of one VIP in one step: what was foreseen, and what was found at its end."""

    holder: str
    bound_ms: float  # infinite where no bound is foreseen
    found: View
    outage_ms: float


class Play:
    """One plan on one cluster, once."""

    def __init__(self, plan, cluster):
        self.plan, self.cluster = plan, cluster
        self.holders = {line["vip"]: line["before"] for line in plan.outages}
        self.steps: List[Dict[str, Outcome]] = []
        # After this long nothing moves any more that has not moved yet.
        routers = [planned.router for planned in plan.members.values()]
        instances = [instance for router in routers for instance in router.instances]
        silence = max(3 * instance["advert_interval"] + 1 + instance["preempt_delay"] for instance in instances)
        self.patience = silence + max(script["interval"] for router in routers for script in router.scripts) + 1

    def start(self, races):
        if races:
            self._lead()
        self._step(time.time(), {vip: {"before": name} for vip, name in self.holders.items()}, "before", "")

    def _lead(self):
        """Sees to it that the first holder holds, of whose failures the forecast speaks."""
        while not self.cluster.settle(self.holders, self.patience):
            for name in {name for vip in self.holders for name in self.cluster.view(vip).holders}:
                self.cluster.fail("keepalived_stopped", name)
                self.cluster.settle(self.holders, self.patience)
                self.cluster.revert("keepalived_stopped", name)

    def run(self, failures, races):
        if races:
            self.holders = {line["vip"]: line["before"] for line in self.plan.outages}
            self._lead()
        over: List[Tuple[Any, ...]] = []
        for event, name in failures:
            lines = self._lines(event, name, [earlier for _event, earlier, _lines in over])
            self._step(self.cluster.fail(event, name), lines, "after", "outage_ms")
            over.append((event, name, lines))
        for event, name, lines in reversed(over):
            self._step(self.cluster.revert(event, name), lines, "back", "back_ms")

    def _lines(self, event, name, out):
        """What is foreseen for the VIPs that this member holds; of two failures, as if the first never took part."""
        foreseen = self.plan.outages
        if out:
            members = {other: planned for other, planned in self.plan.members.items() if other not in out}
            foreseen = forecast.forecast(planner.forecast_input(self.plan._replace(members=members)))["outages"]
        held = [line for line in foreseen if (line["event"], line["member"]) == (event, name)]
        return {line["vip"]: line for line in held if self.holders[line["vip"]] == name}

    def _step(self, at, lines, holder, bound):
        wanted = {vip: lines[vip][holder] if vip in lines else name for vip, name in self.holders.items()}
        self.cluster.settle(wanted, 2 * self.patience)
        if wanted == self.holders and bound:
            self.cluster.stays_settled(wanted, self.patience)
        now = time.time()
        found = {}
        for vip, name in wanted.items():
            most = lines[vip].get(bound, math.inf) if vip in lines else 0
            found[vip] = Outcome(name, most, self.cluster.view(vip), self.cluster.outage(vip, at, now))
        self.steps.append(found)
        self.holders = wanted


Steps = List[Dict[str, Outcome]]  # of one play, the outcomes in each by VIP


def play(case, folder, aborted) -> Steps:
    plan = case.plan()
    assert plan.outages, plan.faults
    with Cluster(plan, folder, aborted) as cluster:
        playing = Play(plan, cluster)
        playing.start(case.races)
        for failures in case.script:
            playing.run(failures, case.races)
        return playing.steps


def steps_of(case):
    """What the steps of a play are called, in their order."""
    found = ["start"]
    for failures in case.script:
        played = [f"{event} at {name}" for event, name in failures]
        found += played + [f"{what} ends" for what in reversed(played)]
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The steps of each play; what one raises fails all tests, which is what it should do."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    aborted = threading.Event()
    with ThreadPoolExecutor(AT_ONCE, initializer=use_realtime_priority) as pool:
        try:
            plays = {
                name: pool.submit(play, case, tmp_path_factory.mktemp("play"), aborted) for name, case in PLAYED.items()
            }
            return {name: playing.result() for name, playing in plays.items()}
        finally:
            aborted.set()


STEPS = [
    pytest.param(name, at, id=f"{name}: {step}")
    for name, case in PLAYED.items()
    for at, step in enumerate(steps_of(case))
]
# Of the start nothing is foreseen but who holds, and who was refused was not given a bound.
BOUNDED = [param for param in STEPS if param.values[1] > 0 and not PLAYED[param.values[0]].refused]


@pytest.mark.parametrize("name, at", STEPS)
def test_the_holder_is_who_was_foreseen_and_nobody_else(played, name, at):
    for vip, outcome in played[name][at].items():
        assert (vip, outcome.found.holders) == (vip, [outcome.holder])
        assert (vip, outcome.found.announcer) == (vip, outcome.holder), "clients send to somebody else"


@pytest.mark.parametrize("name, at", BOUNDED)
def test_the_outage_is_within_what_was_foreseen(played, name, at):
    for vip, outcome in played[name][at].items():
        assert outcome.outage_ms <= outcome.bound_ms < math.inf, vip


def test_a_tie_is_refused_and_really_leaves_the_vip_with_a_dead_haproxy(played):
    name = "polled, weight 2, a tie"
    assert "ties with lb2" in pair.plan(CASES[name].hosts()).faults[0]
    dead = played[name][1][VIP]
    assert (dead.found.holders, dead.found.served) == (["lb1"], False)
    # Longer than a tie's mend, weight 4, would take.
    assert dead.outage_ms > 5000
