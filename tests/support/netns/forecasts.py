# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays the failures of a plan with real keepalived, and records what the forecast says of them."""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast, scenario
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair

from support.netns.keepaliveds import EVENTS, STEADY, Cluster
from support.netns.recorder import View
from support.plans.pairs import member

# A member that was alone held the VIPs of the others, too. If it announces one of them just as it is back, its clients
# go on to it until the holder has heard that it yields.
YIELDED_MS = scenario.HOOK / 1000 + forecast.SWITCH_MS
VIP, VIP2 = "192.0.2.10", "192.0.2.11"
EACH = [[(event, "lb1")] for event in EVENTS]


class Case(NamedTuple):
    settings: Dict[str, Any]
    members: int = 2
    # Each list has failures that overlap: they come one after the other, and end in reverse order.
    script: List[List[Tuple[str, str]]] = EACH
    races: bool = False  # chance decides which member is Active when all start together
    refused: Optional[Dict[str, Any]] = None  # for a plan that is refused: the line that the forecast would contain

    def hosts(self):
        return [member(number, **self.settings) for number in range(1, self.members + 1)]

    def plan(self):
        if self.refused:
            return planner.draft(pair.LAYOUT, self.hosts())._replace(outages=[self.refused])
        return pair.plan(self.hosts())


def never_moves(event, vip):
    line = dict.fromkeys(("member", "before", "after", "back"), "lb1")
    return {"event": event, "vip": vip, **line, "outage_ms": math.inf, "back_ms": math.inf}


# Where a VIP stays on the member that has taken it over, a member may stand still for two seconds without losing it.
LASTING = {"advert_interval": 3}
TIE = {"priorities": [100, 98], "track_weight": 2, "track_events": False, "track_interval": 1}
CASES = {
    "events, FAULT": Case({}),
    "polled, FAULT": Case({"priorities": [100, 98], "track_events": False, "track_interval": 1}),
    "polled, weight 4": Case({**TIE, "track_weight": 4}),
    "polled, weight 2, a tie": Case({**TIE, **LASTING}, script=[EACH[0]], refused=never_moves("haproxy_killed", VIP)),
    "no preemption": Case({"preempt": False, **LASTING}, races=True),
    "equal priorities": Case(
        {"priorities": [100, 100], **LASTING}, script=[[(event, "lb2")] for event in EVENTS], races=True
    ),
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


class Outcome(NamedTuple):
    """One VIP in one step: the forecast, and the state at the end of the step."""

    holder: str
    bound_ms: float  # infinite if the forecast has no bound
    view: View
    outage_ms: float


class Play:
    """One run of one plan on one cluster."""

    def __init__(self, plan, cluster):
        self.plan, self.cluster = plan, cluster
        self.holders = {line["vip"]: line["before"] for line in plan.outages}
        self.steps: List[Dict[str, Outcome]] = []
        # After so many seconds without a change there will be none.
        routers = [planned.router for planned in plan.members.values()]
        instances = [instance for router in routers for instance in router.instances]
        silence = max(3 * instance["advert_interval"] + 1 + instance["preempt_delay"] for instance in instances)
        self.limit = silence + max(script["interval"] for router in routers for script in router.scripts) + 1

    def start(self, races):
        if races:
            self._make_holders()
        self._step(time.time(), {vip: {"before": name} for vip, name in self.holders.items()}, "before", "")

    def _make_holders(self):
        """Make the members the holders whose failures are forecast: stop the others until they are."""
        while not self.cluster.settle(self.holders, self.limit):
            for name in {name for vip in self.holders for name in self.cluster.view(vip).holders}:
                self.cluster.fail("keepalived_stopped", name)
                self.cluster.settle(self.holders, self.limit)
                self.cluster.revert("keepalived_stopped", name)

    def run(self, failures, races):
        if races:
            self.holders = {line["vip"]: line["before"] for line in self.plan.outages}
            self._make_holders()
        over: List[Tuple[Any, ...]] = []
        for event, name in failures:
            lines = self._lines(event, name, [earlier for _event, earlier, _lines in over])
            self._step(self.cluster.fail(event, name), lines, "after", "outage_ms")
            over.append((event, name, lines))
        for event, name, lines in reversed(over):
            others_ms = YIELDED_MS if event == "host_cut" else 0
            self._step(self.cluster.revert(event, name), lines, "back", "back_ms", others_ms)

    def _lines(self, event, name, out):
        """Return the forecast lines of the VIPs that a member holds, for the plan without the members that are out."""
        outages = self.plan.outages
        if out:
            members = {other: planned for other, planned in self.plan.members.items() if other not in out}
            outages = forecast.forecast(planner.forecast_input(self.plan._replace(members=members)))["outages"]
        held = [line for line in outages if (line["event"], line["member"]) == (event, name)]
        return {line["vip"]: _of_the_move(line) for line in held if self.holders[line["vip"]] == name}

    def _step(self, at, lines, holder, bound, others_ms=0):
        """:param others_ms: the bound of the VIPs that the member does not hold"""
        expected = {vip: lines[vip][holder] if vip in lines else name for vip, name in self.holders.items()}
        self.cluster.settle(expected, steady=self.limit if expected == self.holders and bound else STEADY)
        now = time.time()
        outcomes = {}
        for vip, name in expected.items():
            bound_ms = lines[vip].get(bound, math.inf) if vip in lines else others_ms
            outcomes[vip] = Outcome(name, bound_ms, self.cluster.view(vip), self.cluster.outage(vip, at, now))
        self.steps.append(outcomes)
        self.holders = expected


def _of_the_move(line):
    """Return a line with what the VIP's return may take, without the time in which its holder may have no server."""
    return {**line, "back_ms": line["back_ms"] - line.get("back_later_ms", 0)}


Steps = List[Dict[str, Outcome]]  # of one run: the outcomes by VIP


def play(case, folder, aborted, **recording) -> Steps:
    plan = case.plan()
    assert plan.outages, plan.faults
    with Cluster(plan, folder, aborted, **recording) as cluster:
        playing = Play(plan, cluster)
        playing.start(case.races)
        for failures in case.script:
            playing.run(failures, case.races)
        return playing.steps


def steps_of(case):
    """Return the names of the steps of a case, in order."""
    names = ["start"]
    for failures in case.script:
        begins = [f"{event} at {name}" for event, name in failures]
        names += begins + [f"{begin} ends" for begin in reversed(begins)]
    return names
