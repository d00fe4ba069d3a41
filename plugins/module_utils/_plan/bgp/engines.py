# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How members that announce their VIPs by BGP change their engine: each leaves, changes, is back and proved. Pure.

No router hands a VIP over here, and a balancer that only stops fails its share of connections until its paths have
gone. So its paths go first, while it serves, and only where each router of another member has its path to each VIP.
FRR and its peers are as planned before the first member leaves; the health gate changes with the balancer that it asks.

Wherever a run is cut off, the others serve. The member's gate puts no VIP on lo unless a balancer is known to answer,
and the next run has FRR announce what is there.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from ..._agent.config.schema import Faults
from ..._shared.engines import FRR_UNIT, UNITS
from ..._shared.paths import GATE
from ..members.hosts import Member
from ..model.plan import Expected, MemberPlan, Plan, Vip
from .leaving import commands
from .order import announced
from .settings import BGP, VRRP


def in_turn(members: Sequence[Member], planned: Mapping[str, MemberPlan], vips: Sequence[Vip]) -> List[str]:
    """Return the members that change their engine, those that announce nothing now first."""
    changing = [member for member in members if _changes(planned[member["name"]])]
    return [member["name"] for member in sorted(changing, key=lambda each: bool(announced(each["host"], vips)))]


def _changes(planned: MemberPlan) -> bool:
    return bool(planned.bgp and planned.replaces)


def leaving(member: Member, planned: MemberPlan, vips: Sequence[Vip]) -> MemberPlan:
    """Return the plan of a member with how it leaves while its engine changes, and what it shows until then."""
    if not _changes(planned):
        return planned
    frr, on_lo = planned.bgp["frr"], announced(member["host"], vips)
    families = sorted({family for peer in frr["peers"] for family in peer["families"]})
    return planned._replace(
        expected=planned.expected._replace(every_path=True),
        proof=_as_it_runs(planned, on_lo) if on_lo else None,
        leaves={"vips": on_lo, "frr": commands(frr["asn"], families)},
    )


def _as_it_runs(planned: MemberPlan, on_lo: List[str]) -> Expected:
    """Return what a member shows with the engine of before: its gate has these VIPs on lo, so its checks succeed."""
    units = [UNITS[planned.replaces].balancer, FRR_UNIT, GATE]
    return planned.expected._replace(
        units=units, services=[], targets=[], peered=[], down_file="", judged=0.0, announced=on_lo, every_path=False
    )


def faults(members: Sequence[Member], plan: Plan, prefix: str) -> Iterator[str]:
    """Yield why a run must not change the engine of a member.

    :param members: of one that was not read nothing is known
    """
    changing = [member for member in members if _changes(plan.members[member["name"]])]
    for member in [each for each in changing if not each.get("outside_limit")]:
        name, planned = member["name"], plan.members[member["name"]]
        if planned.moves_from or planned.pods:
            yield f"{name} would change its delivery, which no run does with {prefix}_reach: {BGP} yet."
        elif plan.move.to:
            yield f"{name} would change its engine and its reach in one run: change the engine before."
        elif planned.router.instances:
            yield (
                f"{name} would change its engine, and has VRRP beside BGP: run it with {prefix}_reach: {VRRP} first, "
                "change the engine, and then come back."
            )
        else:
            yield from _alone(member, members, plan)


def _alone(member: Member, members: Sequence[Member], plan: Plan) -> Iterator[str]:
    """Yield which VIPs no other member of a run can serve while this one changes its engine."""
    here = [each for each in members if each is not member and not each.get("outside_limit") and not each.get("silent")]
    others = {vip for each in here for vip in plan.members[each["name"]].expected.announced}
    only = [vip for vip in announced(member["host"], plan.vips) if vip not in others]
    if only:
        yield (
            f"{member['name']} would change its engine, and no other member of this run serves {', '.join(only)} "
            "meanwhile: run it for all members, or run onprem.lb.remove and then onprem.lb.site, which interrupts the "
            "service."
        )


class Proof(NamedTuple):
    """What a member has shown before another one leaves.

    :ivar seen: what `layout_info` returned; nothing if it was not asked
    """

    name: str
    seen: Mapping[str, Any]


def asked(plan: Mapping[str, Any], name: str, leaves: str) -> Dict[str, Any]:
    """Return what a member has to show before another one leaves: that each of its routers has each path.

    Those whose turn comes later run the engine of before.

    :param plan: as data
    """
    planned, order = plan["members"][name], plan["migration_order"]
    waits = name in order[order.index(leaves) :]
    return {**((planned["proof"] if waits else None) or planned["expected"]), "every_path": True}


def last_one(plan: Mapping[str, Any], name: str, proofs: Sequence[Proof]) -> Faults:
    """Say which VIPs nobody is proved to serve without a member. What is not known proves nothing.

    :param plan: as data
    """
    others = [each for each in proofs if each.name in plan["members"] and each.name != name]
    proved = [each.name for each in others if each.seen.get("faults") == []]
    served = {vip for each in proved for vip in plan["members"][each]["expected"]["announced"]}
    lacking = [vip for vip in plan["members"][name]["leaves"]["vips"] if vip not in served]
    if not lacking:
        return []
    why = [
        f"{each.name}: {' '.join(each.seen.get('faults') or [str(each.seen.get('msg', 'no answer'))])}"
        for each in others
        if each.name not in proved
    ]
    without = f"Without {name} nobody is proved to serve {', '.join(lacking)}, so it keeps its engine and serves."
    return [" ".join([without, *why, "Fix that, and repeat the run."])]


def told(planned: Mapping[str, MemberPlan], order: Sequence[str]) -> List[str]:
    """Say what a change of the engine costs."""
    changing = [name for name in order if planned[name].leaves.get("vips")]
    if not changing:
        return []
    count = sum(bool(each.expected.announced) for each in planned.values())
    leave = "leave one after the other, each while its" if changing[1:] else "leaves while its"
    return [
        f"{', '.join(changing)} {leave} engine changes: lasting connections through it are lost, and "
        f"when it is back up to {round(100 * (count - 1) / count)} % of those of the others."
    ]
