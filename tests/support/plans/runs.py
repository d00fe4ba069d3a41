# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that changes a living layout, step by step: what each member runs, who holds each VIP, and what a check finds.

The steps are those of `roles/layout`, taken from the plan. After each of them everything settles: a check that fails
has failed often enough, and the routers, which are the forecast's, have elected whom they elect.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple
from urllib.parse import urlsplit

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import changes, transition, turns
from ansible_collections.onprem.lb.plugins.module_utils._plan.change.play import HANDOVER, MILLISECOND
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import cluster, simulator
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi.layout import ROUTER_PORTS
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.instances import with_password
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import (
    Balancer,
    MemberPlan,
    Plan,
    Redirect,
    Router,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import ANY
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

OLD, BETWEEN, NEW = "old", "between", "new"  # between: the planned router of an engine that goes
KEEPALIVED = "2.2.7"
Target = Tuple[str, int]


class Serving(NamedTuple):
    """A balancer that runs."""

    engine: str
    balancer: Balancer

    def listens(self, address: str, port: int) -> bool:
        """Whether it accepts connections to an address of its host."""
        wildcard = "::" if ":" in address else ANY
        own = [*self.balancer.services, *self.balancer.monitors]
        return any(each["port"] == port and {wildcard, address} & {*each["bind"]} for each in own)

    def answers(self, port: int, path: str) -> bool:
        """Whether it says at a port of its host that it is well."""
        at_monitors = {(each["port"], each["path"]) for each in self.balancer.monitors}
        return (port, path) in at_monitors or port in (self.balancer.answer_port, *self.balancer.also_answers)

    @property
    def asked(self) -> Set[int]:
        ports = (each["port"] for each in self.balancer.monitors)
        return {self.balancer.answer_port, *self.balancer.also_answers, *ports}


class Member:
    """What a member runs."""

    def __init__(self, before: MemberPlan, after: MemberPlan) -> None:
        between = after.replaced_router or after.router
        self.routers: Dict[str, Tuple[str, Router]] = {
            OLD: (before.engine, before.router),
            BETWEEN: (before.engine, between),
            NEW: (after.engine, after.router),
        }
        self.before, self.after = before, after
        self.serving: Optional[Serving] = serving(before)
        self.redirect: Optional[Redirect] = before.balancer.redirect
        self.questions: List[Dict[str, Any]] = before.questions
        self.router = OLD if before.router.instances else ""

    def changes(self) -> bool:
        """Whether a run finds anything to do here."""
        parts = ("engine", "balancer", "router", "questions")
        return any(getattr(self.before, part) != getattr(self.after, part) for part in parts)


def serving(planned: MemberPlan) -> Optional[Serving]:
    return Serving(planned.engine, planned.balancer) if planned.balancer.services else None


def on_the_way(planned: MemberPlan) -> Optional[Serving]:
    """Return the balancer that a member has from its own turn until whoever asks it has changed."""
    return serving(planned._replace(**planned.meanwhile._asdict()) if planned.meanwhile else planned)


class Run:
    """A run from one plan to the next.

    :param members: as it has found them
    """

    def __init__(self, before: Plan, plan: Plan, members: List[Dict[str, Any]], auth_pass: str) -> None:
        self.plan = plan
        self.given = turns.turns(members, plan.members, auth_pass, plan.vips)
        self.links = {turn.name: turn.links for turn in self.given}
        in_order = [] if plan.routers_together else plan.order
        self.rows = turns.rows(self.given, plan.sole_router, in_order)
        self.gaps = turns.longest_gaps(self.given, plan.sole_router, in_order)
        self.starts_anew = transition.to_play(self.given, plan.sole_router, plan.migration_order).starts_anew
        self.members = {name: Member(before.members[name], plan.members[name]) for name in plan.members}
        self.kept_targets = {*self.own(before.targets)} & {*self.own(plan.targets)}
        self.wrong: List[str] = []
        self._instances: List[simulator.Instance] = []
        self._tracked: List[Dict[str, Any]] = []
        self.numbers: Dict[Tuple[str, str], List[int]] = {}
        self.known: Dict[int, List[str]] = {}  # of an instance, which checks it was told that fail
        groups = [
            group
            for name in self.members
            for which in (OLD, BETWEEN, NEW)
            for group in self._number(name, which, auth_pass)
        ]
        self.sim = simulator.Simulation(self._instances, groups=groups)
        self.settled = simulator.settling_time(self._instances) + max(each.router.interval for each in self._instances)
        self.holders = {vip: turn.name for turn in self.given for vip in turn.holds}
        self._begin()

    def _number(self, name: str, which: str, auth_pass: str) -> Iterator[Tuple[int, ...]]:
        """Number the instances of a router of a member, and yield the numbers of each sync group."""
        engine, router = self.members[name].routers[which]
        numbers = {}
        for instance in with_password(router.instances, auth_pass):
            names = [item["name"] for item in _tracked(instance)]
            trackers = [cluster.Tracker(each, 0, 0, 0, 0, 0) for each in names]
            made = cluster.simulated(
                name, {**instance, "auth_pass": changes.password(instance)}, trackers, self.links[name]
            )
            numbers[instance["name"]] = len(self._instances)
            self._instances.append(
                made._replace(
                    keeps_addresses_on_stop=engine == engines.AGENT,
                    compares_addresses=changes.compares_lists(engine, KEEPALIVED),
                )
            )
            self._tracked.append(instance)
        self.numbers[name, which] = [*numbers.values()]
        for group in router.sync_groups:
            yield tuple(numbers[each] for each in group["instances"])

    def own(self, targets: Sequence[Sequence[Any]]) -> List[Target]:
        """Return the targets that a balancer serves. A cluster's ingress routers are none of ours."""
        of_cluster = any(member.redirect for member in self.members.values())
        return [(vip, port) for vip, port in targets if not (of_cluster and port in ROUTER_PORTS)]

    def _begin(self) -> None:
        """Let the members run what they have run for long: of each Virtual Router the holder has begun."""
        began = [
            (name, number)
            for name, member in self.members.items()
            for number in self.numbers[name, member.router or OLD]
        ]
        for holds in (True, False):
            for name, number in began:
                addresses = self._instances[number].advertisement.addresses
                if any(self.holders.get(vip) == name for vip in addresses) is holds:
                    self.sim.running.add(name)
                    self._start(number)
            self._settle()
        self.sim.history[:] = [simulator.Moment(self.sim.now, frozenset(self.sim.holding))]

    # -- what a run does with one member

    def stop(self, name: str) -> None:
        member = self.members[name]
        for number in self.numbers.get((name, member.router), []):
            self.sim.inject(number, machine.Stop(self._instances[number].keeps_addresses_on_stop))
        member.router = ""

    def load(self, name: str, which: str) -> None:
        """Reload a router, or start one that does not run."""
        member = self.members[name]
        old = {self._instances[at].virtual_router: at for at in self.numbers.get((name, member.router), [])}
        new = {self._instances[at].virtual_router: at for at in self.numbers[name, which]}
        goes_on = {key for key in old.keys() & new.keys() if (name, key) not in self.starts_anew}
        for key, number in old.items():
            if key in goes_on:
                self.sim.reconfigure(number, new[key])
            else:
                self.sim.remove(number)
        self.sim.running.add(name)
        for key, number in new.items():
            if key not in goes_on:
                self._start(number)
        member.router = which if new else ""

    def _start(self, number: int) -> None:
        self.sim.inject(number, machine.Start())
        self._look(number)

    # -- what is so

    def failing(self, number: int) -> List[str]:
        """Return the checks of an instance that fail."""
        name = self._instances[number].member
        return [
            item["name"] for item in _tracked(self._tracked[number]) if not self._passes(name, number, item["name"])
        ]

    def _passes(self, name: str, number: int, check: str) -> bool:
        """Whether a check passes. What is no matter of the balancer passes always."""
        member = self.members[name]
        _engine, router = next(
            member.routers[which] for which in (OLD, BETWEEN, NEW) if number in self.numbers[name, which]
        )
        question = next((each for each in member.questions if each["name"] == check), None)
        script = next((each for each in router.scripts if each["name"] == check), None)
        if script is None:
            return question is None or self._answers(member, question["port"], question.get("path", "/"))
        if script.get("any_of"):
            urls = [[urlsplit(url) for url in every] for every in script["any_of"]]
            return any(all(self._answers(member, url.port or 80, url.path) for url in every) for every in urls)
        alive = [engine for engine, command in engines.ALIVE.items() if command == script["command"]]
        return not alive or (member.serving is not None and member.serving.engine == alive[0])

    def _answers(self, member: Member, port: int, path: str) -> bool:
        of_balancers = [each for each in (serving(member.before), serving(member.after), member.serving) if each]
        if not any(port in each.asked for each in of_balancers):
            return True  # an API server, or an ingress router
        return member.serving is not None and member.serving.answers(port, path)

    def _look(self, number: int) -> bool:
        """Tell an instance what its checks find; return whether that is new."""
        failing, instance = self.failing(number), self._tracked[number]
        is_new, self.known[number] = self.known.get(number) != failing, failing
        for item in [*instance["track_scripts"], *instance["track_interfaces"]]:
            self._tell(number, item["name"], tracking.check(item["weight"], item["name"] not in failing))
        for item in instance["track_files"]:
            self._tell(number, item["name"], tracking.file(item["weight"], int(item["name"] in failing)))
        return is_new

    def _tell(self, number: int, name: str, reading: tracking.PriorityDelta) -> None:
        self.sim.inject(number, machine.TrackerUpdate(name, reading))

    def passes(self) -> None:
        """Let the time pass in which the others have elected whom they elect."""
        self.sim.run(self.sim.now + self.settled)

    def _settle(self) -> None:
        for _again in range(2):
            self.passes()
            news = [self._look(number) for number in self.running()]
            if not any(news):
                return
        self.passes()

    def running(self) -> List[int]:
        """Return the numbers of the instances that run."""
        return [
            number for name, member in self.members.items() for number in self.numbers.get((name, member.router), [])
        ]

    def who_holds(self, vip: str, holding: Any = None) -> List[str]:
        held = (self._instances[at] for at in (self.sim.holding if holding is None else holding))
        return sorted({each.member for each in held if vip in each.advertisement.addresses})

    # -- what is wrong

    def judge(self, what: str) -> None:
        """Note what is wrong after a step, and what was since the last one."""
        self._settle()
        self.wrong += [f"{what}: {each}" for each in [*self._asked_in_vain(), *self._held_wrongly(), *self._refused()]]
        self.sim.history[:] = [simulator.Moment(self.sim.now, frozenset(self.sim.holding))]

    def _asked_in_vain(self) -> Iterator[str]:
        for number in self.running():
            for check in self.failing(number):
                yield f"{self._instances[number].member}'s check {check} fails for {self._instances[number].name}"

    def _held_wrongly(self) -> Iterator[str]:
        for vip in self.gaps:
            several, nobody = (_longest(self._spans(vip, count)) for count in (lambda n: n > 1, lambda n: not n))
            now, before = self.who_holds(vip), self.holders.get(vip)
            if several > HANDOVER:
                yield f"{vip} has had several holders"
            if nobody > self.gaps[vip] * cluster.SECOND + MILLISECOND:
                yield f"{vip} has had no holder for {nobody / cluster.SECOND:g} s of {self.gaps[vip]:g} s"
            if len(now) == 1 and now != [before]:
                if not self._is_announced(vip):
                    yield f"{vip} has moved from {before} to {now[0]}"
                self.holders[vip] = now[0]

    def _is_announced(self, vip: str) -> bool:
        moves = any(row.kind == changes.MOVES for row in self.rows.get(vip, []))
        return moves or bool(self.plan.sole_router) or any(each.interrupted for each in self.plan.members.values())

    def _spans(self, vip: str, count: Any) -> Iterator[int]:
        """Yield for how long each time the number of a VIP's holders was so since the last step."""
        since: Optional[int] = None
        for moment in [*self.sim.history, simulator.Moment(self.sim.now, frozenset(self.sim.holding))]:
            is_so = bool(count(len(self.who_holds(vip, moment.holding))))
            if since is not None and not is_so:
                yield moment.at - since
            since = (moment.at if since is None else since) if is_so else None
        if since is not None:
            yield self.sim.now - since

    def _refused(self) -> Iterator[str]:
        """Yield what the holder of a VIP does not serve although the plans of before and now have it."""
        for vip, port in sorted(self.kept_targets):
            for name in self.who_holds(vip):
                if not self.serves(name, vip, port):
                    yield f"{vip} port {port} is refused by {name}"

    def serves(self, name: str, address: str, port: int) -> bool:
        member = self.members[name]
        if member.redirect and address in member.redirect.vips:
            port = member.redirect.ports.get(port, port)
        return member.serving is not None and member.serving.listens(address, port)

    def judge_return(self, what: str) -> None:
        """Note which VIP several members hold, and which check fails, on the way back."""
        self._settle()
        several = [vip for vip in self.gaps if _longest(self._spans(vip, lambda n: n > 1)) > HANDOVER]
        self.wrong += [f"{what}: {each}" for each in [*self._asked_in_vain(), *several]]
        self.sim.history[:] = [simulator.Moment(self.sim.now, frozenset(self.sim.holding))]

    def fork(self) -> Run:
        """Return an independent copy."""
        other = copy.copy(self)
        other.sim, other.wrong, other.holders = self.sim.fork(), [*self.wrong], dict(self.holders)
        other.known = dict(self.known)
        other.members = {name: copy.copy(member) for name, member in self.members.items()}
        return other

    def returns(self, name: str) -> None:
        """Let a member have what it had before the run."""
        member = self.members[name]
        member.serving, member.redirect = serving(member.before), member.before.balancer.redirect
        member.questions = member.before.questions
        if member.router != OLD:
            self.load(name, OLD)

    def is_proved(self, name: str) -> List[str]:
        """Return what keeps a member from taking over, as `layout_info` finds it before the next wave."""
        proof = self.plan.members[name].proof
        assert proof is not None
        in_fault = [number for number in self.running() if self._instances[number].member == name]
        in_fault = [number for number in in_fault if self.sim.states[number].name == machine.FAULT]
        held = {vip.address: self.who_holds(vip.address) for vip in proof.vips}
        return [
            *(f"{self._instances[number].name} is in FAULT" for number in in_fault),
            *(f"{vip} has {len(some)} holders" for vip, some in held.items() if len(some) != 1),
            *(f"nothing answers at {at} port {port}" for at, port in proof.targets if not self.serves(name, at, port)),
        ]


def _tracked(instance: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [*instance["track_scripts"], *instance["track_files"], *instance["track_interfaces"]]


def _longest(spans: Iterator[int]) -> int:
    return max(spans, default=0)
