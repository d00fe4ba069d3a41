# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""In which order a run changes members that announce their VIPs by BGP: one after the other, each proved. Pure.

Each of them serves, so that what fails on one leaves the others. Those that announce nothing now come first.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from ..._shared.engines import UNITS
from ..change.transition import Way
from ..change.turns import Turn
from ..model.plan import ALWAYS, MEANWHILE, Expected, Meanwhile, MemberPlan, Move, Undo, Vip
from .settings import BGP, BOTH, VRRP

NO_UNDO = Undo(reason="members that announce by BGP have no undo yet. The next run completes what this one has begun.")


def announced(host: Mapping[str, Any], vips: Sequence[Vip]) -> List[str]:
    """Return the VIPs that a host has on lo, from which they are announced.

    :param host: as `host_info` returns it
    """
    return [vip.address for vip in vips if vip.address in host.get("on_loopback", ())]


def order(members: Sequence[Mapping[str, Any]], vips: Sequence[Vip]) -> List[List[str]]:
    """Return the members of a run in the order in which they change; [] if all of them change at once.

    They do where none of them announces anything.
    """
    here = [member for member in members if not member.get("outside_limit")]
    serving = [member["name"] for member in here if announced(member["host"], vips)]
    others = [member["name"] for member in here if member["name"] not in serving]
    found = [*([others] if others else []), *([name] for name in serving)]
    return found if serving and len(found) > 1 else []


def proved(planned: Mapping[str, MemberPlan]) -> Dict[str, MemberPlan]:
    """Return the members' plans with what must be so on each before the next one changes: all that is so at the end."""
    return {name: member._replace(proof=member.expected if member.bgp else None) for name, member in planned.items()}


def on_the_way(
    members: Sequence[Mapping[str, Any]], planned: Mapping[str, MemberPlan], move: Move
) -> Dict[str, MemberPlan]:
    """Return the members' plans with what they need while both carry the VIPs.

    What lets the one in must stay open until it has ended. What the inventory says of it may be gone.
    """
    found = {}
    for name, plan in planned.items():
        quiet = ALWAYS if plan.bgp and plan.router.instances else MEANWHILE if move.to else ""
        if move.to:
            now = plan.meanwhile or Meanwhile(plan.balancer, plan.firewall)
            wanted = plan.expected._replace(every_path=bool(move.announcing))
            plan = plan._replace(
                meanwhile=now._replace(firewall=now.firewall._replace(keeps_others=True)), expected=wanted
            )
        found[name] = plan._replace(quiet=quiet)
    return found


def as_they_run(given: List[Turn], planned: Mapping[str, MemberPlan]) -> List[Turn]:
    """Return the turns of members whose routers stay as they are until BGP is proved."""
    return [
        turn._replace(after=turn.before, restarts=False)
        if planned[turn.name].bgp and not planned[turn.name].router.instances
        else turn
        for turn in given
    ]


def way(found: Way, members: Sequence[Mapping[str, Any]], vips: Sequence[Vip], move: Move) -> Way:
    """Return the way of a run with the order of members that announce and have no router.

    Routers that come to them start together, once all balancers are as planned.
    """
    if found.order:
        return found
    starts = move.to in (VRRP, BOTH)
    in_order = order(members, vips)
    return found._replace(order=in_order, routers_together=found.routers_together or (starts and bool(in_order)))


def balancers_proved(
    planned: Mapping[str, MemberPlan], members: Sequence[Mapping[str, Any]], move: Move
) -> Dict[str, MemberPlan]:
    """Return the members' plans with the proof of a balancer that changes while nothing else does.

    What carries the VIPs stays as it is until all balancers are as planned: VRRP's holder with its VIP, and what is
    announced on lo.
    """
    if not move.to:
        return {**planned}
    found = {}
    for member in members:
        plan = planned[member["name"]]
        wanted = plan.proof or (_of_balancer(plan.expected) if move.came_from == BGP else None)
        found[member["name"]] = plan._replace(proof=wanted and _as_now(wanted, plan, member["host"], move.came_from))
    return found


def _of_balancer(wanted: Expected) -> Expected:
    vips = {vip.address for vip in wanted.vips}
    return wanted._replace(vips=[], targets=[target for target in wanted.targets if target[0] not in vips], settle=0.0)


def _as_now(wanted: Expected, planned: MemberPlan, host: Mapping[str, Any], came_from: str) -> Expected:
    running = UNITS[planned.engine]
    units = [running.balancer] if came_from == BGP else [*running]
    on_lo = [each for each in planned.expected.announced if each in host.get("on_loopback", ())]
    return wanted._replace(units=units, announced=on_lo, sessions=[], every_path=False, elects=came_from == VRRP)
