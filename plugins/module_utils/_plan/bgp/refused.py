# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run refuses of a plan that the forecast shows. Pure.

That is a change of living members that no run can make yet, one that would leave members behind, and one that takes a
VIP from clients whose user has not agreed to that.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Sequence

from ..._agent.config.schema import Faults, boolean
from ..._shared.engines import FRR, ROUTERS
from ..members.hosts import Member, carried
from ..model.plan import MemberPlan, Plan
from . import engines
from .change import carries
from .order import announced
from .peers import links
from .settings import BGP, BOTH, VRRP

ACCEPTING = "accept_routed_only"


def refused(members: Sequence[Member], plan: Plan, prefix: str) -> Faults:
    """Return a sentence for each reason why a run does not begin.

    :param members: as `planner` takes them; of one that was not read nothing is known
    """
    known = [{**member, "host": member["host"] or {}} for member in members if member["name"] in plan.members]
    found = [fault for member in known for fault in _unbuilt(member, plan.members[member["name"]], plan, prefix)]
    found += engines.faults(known, plan, prefix)
    found += [fault for member in known for fault in _unverified(member, plan, prefix)]
    if plan.move.to:
        found += [*_unproved(known, prefix), *(fault for member in known for fault in _left_behind(member))]
        found += [*_unasked(known, plan, prefix)] if plan.move.to == BGP else []
    return found


def _unbuilt(member: Mapping[str, Any], planned: MemberPlan, plan: Plan, prefix: str) -> Iterator[str]:
    if planned.bgp and not planned.replaces and _of_others(member["host"], plan):
        yield (
            f"{member['name']} has a VRRP router of others that carries these VIPs, and would keep it: adopt it with "
            f"{prefix}_reach: {VRRP} first, or stop it."
        )


def _of_others(host: Mapping[str, Any], plan: Plan) -> bool:
    vips = {vip.address for vip in plan.vips}
    carrying = any(vips.intersection(carried(instance)) for instance in host.get("instances", []))
    return carrying and bool({*ROUTERS} & {*host.get("active_units", [])}) and not carries(host).vrrp


def _left_behind(member: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a member cannot stay: beside those that have moved it would hold the VIPs alone, or lose them."""
    if member.get("silent"):
        yield (
            f"{member['name']} does not answer, and the way between VRRP and BGP needs every member: wait until it "
            "does."
        )
    elif member.get("outside_limit"):
        yield (
            f"--limit leaves {member['name']} out, and the way between VRRP and BGP needs every member: run it for all "
            "members."
        )


def _unproved(members: List[Dict[str, Any]], prefix: str) -> Iterator[str]:
    if not all(map(_verifies, members)):
        yield (
            f"{prefix}_verify is false, and neither VRRP nor BGP ends before the other one is verified: leave it out "
            "for this run."
        )


def _unverified(member: Member, plan: Plan, prefix: str) -> Iterator[str]:
    """Yield why a member must not end what it announces, as a bootstrap host does: nothing proves that others serve."""
    ends = announced(member["host"], plan.vips) if FRR in plan.members[member["name"]].unused else []
    if ends and not plan.move.to and not _verifies(member):
        yield (
            f"{prefix}_verify is false, and {member['name']} would announce {', '.join(ends)} no more before others "
            "are verified: leave it out for this run."
        )


def _verifies(member: Mapping[str, Any]) -> bool:
    return boolean(member["settings"].get("verify", True)) != (False, None)


def _unasked(members: List[Dict[str, Any]], plan: Plan, prefix: str) -> Iterator[str]:
    accepted = any(boolean(member["settings"].get(ACCEPTING, False))[0] for member in members)
    for vip, network in [] if accepted else links(members, plan.vips):
        yield (
            f"VIP {vip.address} is inside {network}, and its clients there would lose what VRRP gives them: "
            f"use {prefix}_reach: {BOTH}, which keeps VRRP for them, or accept that with -e {prefix}_{ACCEPTING}=true."
        )
