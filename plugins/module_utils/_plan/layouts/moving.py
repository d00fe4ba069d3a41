# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the plans of members, and the order of a run, have beside the usual while VRRP and BGP take turns. Pure.

`bgp.change` has the steps.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from ..._shared.engines import UNITS
from ..bgp.order import order
from ..bgp.settings import BGP, BOTH, VRRP
from ..change.transition import Way
from ..change.turns import Turn
from ..model.plan import ALWAYS, MEANWHILE, Expected, Meanwhile, MemberPlan, Move, Vip


def on_the_way(planned: Mapping[str, MemberPlan], move: Move) -> Dict[str, MemberPlan]:
    """Return the members' plans with what they need while both carry the VIPs.

    What lets the one in must stay open until it has ended. What the inventory says of it may be gone.
    """
    found = {}
    for name, plan in planned.items():
        quiet = ALWAYS if plan.bgp and plan.router.instances else MEANWHILE if move.to else ""
        if move.to:
            now = plan.meanwhile or Meanwhile(plan.balancer, plan.firewall)
            wanted = plan.expected._replace(every_path=bool(move.announcing))
            plan = plan._replace(meanwhile=now._replace(firewall=now.firewall._replace(keep=True)), expected=wanted)
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
