# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The way from VRRP to BGP on living members, and back: the steps, and what must be known before the next one. Pure.

Both run for a while. Clients that come through a router do not notice which of the two it follows: it prefers a path to
one address to the network that the VIP is in. So nobody stops what carries the VIPs before the other one is proved, on
each member.

The holder is the first one to announce and the last one to withdraw, so that routers go on to send to it, and the
connections that last stay where they are. It is the last one to leave VRRP, for the clients on the link.

Linux answers ARP for the addresses of lo on every link. With a VIP on lo and VRRP beside it, a Backup would answer in
place of the holder. So all members are quiet about lo before the first VIP is there, until the last one has gone.
"""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from ..._shared.engines import FRR, ROUTERS
from ..._shared.paths import GATE
from ..members.hosts import Member, held_vips
from ..model.plan import MemberPlan, Move, Vip
from .announcing import UNIT
from .settings import BGP, BOTH, VRRP

QUIET, LOUD = "answer_no_arp_for_lo", "answer_arp_as_before"
ANNOUNCE, WITHDRAW = "announce", "withdraw"  # the second one ends the sessions before the VIPs leave lo
START_VRRP, STOP_VRRP = "start_vrrp", "stop_vrrp"
OPPOSITE = {QUIET: LOUD, ANNOUNCE: WITHDRAW, START_VRRP: STOP_VRRP}
OPPOSITE.update({after: before for before, after in [*OPPOSITE.items()]})
# What must be known of each member of a step before the next one begins; nothing for those that do without.
PATHS = "each router of the member has its path to each VIP"
ONE_HOLDER = "each VIP has one holder on the link, as every member sees it"
PROOFS = {ANNOUNCE: PATHS, START_VRRP: ONE_HOLDER}


class Step(NamedTuple):
    verb: str
    members: List[str]

    @property
    def proof(self) -> str:
        return PROOFS.get(self.verb, "")


class Carries(NamedTuple):
    """What a member has for the VIPs now, whether it runs at the moment or not."""

    vrrp: bool
    bgp: bool


def carries(host: Mapping[str, Any]) -> Carries:
    """Return what an earlier run has set up on a host, also one that was interrupted.

    :param host: as `host_info` returns it
    """
    ours = {*host.get("own_units", [])}
    return Carries(not ours.isdisjoint(ROUTERS), UNIT in ours or GATE in host.get("existing_units", []))


def steps(to: str, order: Sequence[str], came_from: str = "") -> List[Step]:
    """Return the steps of a change of reach.

    :param to: the reach of the plan
    :param order: the members, the holder of most VIPs last
    :param came_from: what carries the VIPs now, where both are to
    """
    one_by_one = [[name] for name in order]
    announce = [Step(ANNOUNCE, names) for names in reversed(one_by_one)]
    start = [Step(START_VRRP, [*order])]
    quiet, loud = [Step(QUIET, [*order])], [Step(LOUD, [*order])]
    if to == BOTH:
        return [*quiet, *(start if came_from == BGP else []), *(announce if came_from == VRRP else [])]
    if to == BGP:
        return [*quiet, *announce, *(Step(STOP_VRRP, names) for names in one_by_one), *loud]
    return [*quiet, *start, *(Step(WITHDRAW, names) for names in one_by_one), *loud]


def move(members: Sequence[Member], planned: Mapping[str, MemberPlan], to: str, vips: Sequence[Vip]) -> Move:
    """Return how a run changes what carries the VIPs of living members; nothing where it stays, or all are new.

    A run that was interrupted has left some members with one, some with both: the next one takes all steps again, of
    which those that were taken find nothing to do.

    :param to: the reach of the plan
    """
    found = {each["name"]: carries(each["host"]) for each in members}
    concerned = [name for name, plan in planned.items() if plan.bgp or plan.router.instances or any(found[name])]
    some = Carries(any(found[name].vrrp for name in concerned), any(found[name].bgp for name in concerned))
    lacking = [name for name in concerned if not all(found[name])]
    moves = {BGP: some.vrrp, VRRP: some.bgp, BOTH: any(some) and bool(lacking)}
    if not moves[to]:
        return ended(planned)
    held = held_vips([*members], [*vips])
    ranks = {name: rank for rank, name in enumerate(concerned)}
    order = sorted(concerned, key=lambda name: (len(held[name]), -ranks[name]))
    came_from = BGP if to == VRRP or not some.vrrp else VRRP
    every = steps(to, order, came_from)
    stopping = STOP_VRRP if to == BGP else WITHDRAW
    return Move(
        to=to,
        came_from=came_from,
        announcing=[name for step in every if step.verb == ANNOUNCE for name in step.members],
        stopping=[name for step in every if step.verb == stopping for name in step.members],
        told=told(every, {name: held[name] for name in concerned}, came_from, to),
    )


def ended(planned: Mapping[str, MemberPlan]) -> Move:
    """Return how members end what they announce, while the others go on: as a bootstrap host does.

    They end their sessions one after the other, once the others are verified and while their VIPs are on lo.
    """
    leaving = [name for name, plan in planned.items() if FRR in plan.unused]
    return Move(came_from=BGP, stopping=leaving) if leaving else Move()


NAMES = {VRRP: "VRRP", BGP: "BGP", BOTH: "both"}
WORDS = {
    QUIET: "{} answer ARP for no address of lo",
    ANNOUNCE: "{} announces",
    START_VRRP: "{} start VRRP",
    STOP_VRRP: "{} leaves VRRP",
    WITHDRAW: "{} ends its sessions",
    LOUD: "{} answer ARP as before",
}


def told(every: Sequence[Step], held: Mapping[str, Sequence[str]], came_from: str, to: str) -> List[str]:
    """Return in words who serves after each step, and which connections it costs.

    :param held: by member, the VIPs that it holds
    """
    lines = [f"From {NAMES[came_from]} to {NAMES[to]}. Each step waits until the one before is proved:"]
    names = [name for step in every[:1] for name in step.members]
    announcing = names if came_from == BGP else []
    electing = names if came_from == VRRP else []
    for number, step in enumerate(every, 1):
        before = announcing
        if step.verb in (ANNOUNCE, WITHDRAW):
            others = [name for name in announcing if name not in step.members]
            announcing = [*others, *(step.members if step.verb == ANNOUNCE else [])]
        elif step.verb in (START_VRRP, STOP_VRRP):
            others = [name for name in electing if name not in step.members]
            electing = [*others, *(step.members if step.verb == START_VRRP else [])]
        routed = f"from routers to {', '.join(announcing)}" if announcing else "from routers to VRRP's holder"
        near = "on the link to VRRP's holder" if electing else "on the link to whoever answers first"
        what = WORDS[step.verb].format(", ".join(step.members))
        lines.append(f"  {number}. {what}: {routed}, {near}{_lost(before, announcing, held)}")
    return lines


def _lost(before: Sequence[str], after: Sequence[str], held: Mapping[str, Sequence[str]]) -> str:
    """Return which share of the lasting connections through routers a step costs a proxy, in words."""
    if before == after:
        return ""
    if not before or not after:  # from the holder of each VIP to one member, or back
        [one] = [*before, *after]
        moved = sorted(vip for name, vips in held.items() for vip in vips if name != one)
        return f"; lasting connections of {', '.join(moved)} are lost" if moved else "; no lasting connection is lost"
    most = max(len(before), len(after))
    return f"; up to {round(100 * (most - 1) / most)} % of lasting connections from routers are lost"


def may_go_on(step: Step, proofs: Mapping[str, Optional[bool]]) -> bool:
    """Return whether the next step may begin. What is not known proves nothing.

    :param proofs: by member, whether that shows which the step asks for; None where nobody could tell
    """
    return not step.proof or all(proofs.get(name) is True for name in step.members)


def undo(done: Sequence[Step]) -> List[Step]:
    """Return the way back from steps, of which the last one may have been taken in part.

    What carried the VIPs before starts first, on all, and is proved; then what the run had added goes.
    """
    back = [Step(OPPOSITE[step.verb], step.members) for step in reversed(done)]
    starting = [step for step in back if step.proof]
    added = [step for step in back if not step.proof and step.verb not in (QUIET, LOUD)]
    quiet = [Step(QUIET, done[0].members), *starting, *added] if done else []
    return [*quiet, *([Step(LOUD, done[0].members)] if done else [])]
