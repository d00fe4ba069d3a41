# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The steps from the members of a layout to its plan, the same for every layout.

Pure: the same members give the same plan. Faults are collected, never raised, so that a user sees all of them at once.

A member is ``{name, address, groups, settings, host, outside_limit, elsewhere}``: its name in the inventory, the
address by which Ansible reaches it, its groups, the role's variables without their prefix as this member has them, what
`host_info` returned there, or None if it was not read, whether this run leaves it as it is, and the VRIDs of the other
pairs of this run (`several`). One that does not answer is ``silent``.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ..._agent.config.schema import Faults, boolean
from ..bgp import announcing, change
from ..bgp import engines as bgp_engines
from ..bgp import forecast as bgp_forecast
from ..bgp import order as bgp_order
from ..change import delivery, meanwhile, order, still_asked, transition
from ..change.turns import Turn, turns
from ..change.undo import taken_over, undo
from ..forecast import drilled, forecast, servers
from ..members import broadcast_domain, engine_choice, other_engine, silent, static_pods, unused
from ..members.departed import departed, record
from ..members.hosts import Member, known_pass
from ..model import answers, drill_records
from ..model.instances import read_instances
from ..model.plan import MemberPlan, Move, Plan, Undo, Vip
from ..model.variables import as_role_variables
from . import direct, follow, moving, planes, resolver
from .judged import Judged, judge, task_faults
from .layout import Draft, Layout
from .member import kept_on, of_member


def plan(
    layout: Layout,
    given: List[Member],
    progress: forecast.Progress = forecast.unseen,
    kept: drill_records.Kept = drill_records.NONE,
) -> Plan:
    """Return the plan of a layout, or the faults of one that fails in some single failure.

    :param progress: as `forecast.forecast` takes it
    :param kept: the records of drills
    """
    drafted = draft(layout, given)
    if drafted.faults:
        return drafted
    found = _forecast(drafted, progress, kept)
    if found.faults:
        return _refused(layout, found.faults)
    return drafted._replace(outages=found.outages, table=[*found.table, *servers.of_plan(drafted, given, kept)])


def _forecast(drafted: Plan, progress: forecast.Progress, kept: drill_records.Kept) -> bgp_forecast.Forecast:
    """Return what each failure costs: with VRRP, with BGP, or with both, each for the clients that it serves."""
    found = []
    if any(member.router.instances for member in drafted.members.values()) or not _announcing(drafted):
        result = forecast.forecast(forecast_input(drafted), progress)
        measured = drilled.table(forecast_input(drafted), drafted, result["outages"], kept)
        found.append(bgp_forecast.Forecast(result["faults"], result["outages"], measured))
    if _announcing(drafted):
        lasting = {vip.address: direct.lasting(vip, drafted.members) for vip in drafted.vips}
        kept_ports = {vip.address: direct.kept_ports(vip, drafted.members) for vip in drafted.vips}
        watched = announcing.watched(drafted.watched, drafted.weighted)
        found.append(bgp_forecast.forecast(drafted._replace(watched=watched), lasting, kept_ports))
    return found[0] if len(found) == 1 else bgp_forecast.of_both(*found)


def _announcing(drafted: Plan) -> bool:
    return any(member.bgp for member in drafted.members.values())


def draft(layout: Layout, given: List[Member]) -> Plan:
    """Return the plan without its forecast: it may still fail in some failure."""
    faults = task_faults(layout, given)
    judged = None if faults else judge(layout, given, faults)
    if judged is None or faults:
        return _refused(layout, faults)
    password = known_pass(judged.members)
    planned = {member["name"]: of_member(member, judged, password) for member in judged.members}
    for member in judged.members:
        name, member_plan = member["name"], planned[member["name"]]
        faults += still_asked.faults(member_plan.balancer, kept_on(member, judged, member_plan.balancer), name)
        faults += read_instances(member_plan.router.instances, f"{name}: instances")[1]
        faults += [f"{name}: {fault}" for fault in unused.faults(member["host"], member_plan.unused)]
    faults += static_pods.faults(judged.members, planned, layout.prefix)
    if not _accepts(given, "accept_cut"):
        faults += planes.faults(judged.members, planned, [vip.address for vip in judged.found.vips], layout.prefix)
    if faults:
        return _refused(layout, faults)
    move = change.move(judged.members, planned, judged.settings["reach"], judged.found.vips)
    planned = moving.on_the_way(planned, move)
    every = moving.as_they_run(turns(judged.members, planned, password, judged.found.vips), planned)
    way = _way(layout.prefix, given, judged, every)
    if way.faults:
        return _refused(layout, way.faults)
    way = moving.way(way, judged.members, judged.found.vips, move)
    if not judged.found.has_vrrp:
        way = way._replace(migrating=bgp_engines.in_turn(judged.members, planned, judged.found.vips))
    whole = _whole(layout, judged, _in_order(judged, planned, every, way, move), way, move)
    return whole._replace(links={turn.name: dict(turn.links) for turn in every})


def vips(layout: Layout, given: List[Member]) -> List[Vip]:
    """Return the VIPs that members would get, whatever is wrong with the rest; none where it is no layout at all."""
    judged = judge(layout, given, [])
    return judged.found.vips if judged else []


def _way(prefix: str, given: List[Member], judged: Judged, every: List[Turn]) -> transition.Way:
    """Return the way from what the members run; one that splits is refused unless the user accepts that."""
    unsafe = delivery.unsafe_moves(every, prefix, judged.delivery.is_pod)
    if unsafe:
        return transition.Way(unsafe)
    carrying = {turn.name: judged.choices[turn.name] for turn in every if turn.after}
    order = engine_choice.migration_order(carrying, judged.held)
    way = transition.way(every, order, prefix, _accepts(given, "accept_split"))
    return way._replace(warnings=[*way.warnings, *meanwhile.on_the_way(every, way)])


def _accepts(given: List[Member], what: str) -> bool:
    return bool(boolean(given[0]["settings"].get(what, False))[0])


def _in_order(
    judged: Judged, planned: Dict[str, MemberPlan], every: List[Turn], way: transition.Way, move: Move
) -> Dict[str, MemberPlan]:
    """Return the members' plans with what the order of the run needs."""
    if not judged.found.has_vrrp and not move.to:
        proved, vips = bgp_order.proved(planned), judged.found.vips
        return {member["name"]: bgp_engines.leaving(member, proved[member["name"]], vips) for member in judged.members}
    found = {}
    for member, turn in zip(judged.members, every):
        own, joins = planned[turn.name], turn.name in way.joining
        kept = still_asked.listening(kept_on(member, judged, own.balancer))
        listening = [*judged.found.listeners(turn.name), *kept]
        found[turn.name] = order.in_order(own, turn, every, member["host"], listening, joins, way.routers_together)
    return moving.balancers_proved(found, judged.members, move)


def _whole(layout: Layout, judged: Judged, planned: Dict[str, MemberPlan], way: transition.Way, move: Move) -> Plan:
    """Return the plan of all members, with the way to it from what they run."""
    members, settings, found, choices, delivered, _without_effect = judged
    alone = way.sole_router
    if alone and choices[alone].replaces:
        replaced = choices[alone].replaces
        replaced_router = engine_choice.accepting_keepalived(
            answers.unasked(found.router(alone, replaced), found.asked(alone), planned[alone].balancer), replaced
        )
        planned[alone] = planned[alone]._replace(replaced_router=replaced_router)
    carrying = {name: choices[name] for name, each in planned.items() if each.router.instances or each.bgp}
    sources = {name: _sources(name, each, found) for name, each in planned.items()}
    return Plan(
        faults=[],
        warnings=[
            *_warnings(judged, planned, way, layout),
            *move.told,
            *bgp_engines.told(planned, way.migrating),
        ],
        vips=found.vips,
        members=planned,
        targets=found.targets,
        watched=found.watched,
        weighted=found.weighted,
        advert_interval=settings["advert_interval"],
        migration_order=way.migrating,
        sole_router=alone,
        order=delivered.in_turn(way.order),
        routers_together=way.routers_together,
        leaving=way.leaving,
        joining=way.joining,
        waiting=static_pods.waiting(members, planned),
        move=move,
        undo=_undo(judged, planned, way, move),
        departed=departed(members, [vip.address for vip in found.vips]),
        record=record(members, sources),
        engines=engine_choice.table(carrying, way.migrating),
        snippet=found.snippet,
        sends=[*found.sends],
    )


def _undo(judged: Judged, planned: Mapping[str, MemberPlan], way: transition.Way, move: Move) -> Undo:
    if judged.found.bgp or move.to:
        hindrances = [*taken_over(judged.members, planned, way)]
        return bgp_order.undo(judged.members, planned, judged.found.vips, hindrances, move)
    return undo(judged.members, planned, way, judged.held)


def _sources(name: str, planned: MemberPlan, found: Draft) -> List[str]:
    if found.bgp and not found.has_vrrp:
        return found.bgp.sources(name)
    there = (placement.address for placement in found.placements[name].values()) if found.senders else ()
    return list(dict.fromkeys([*planned.router.sources, *there]))


def _warnings(judged: Judged, planned: Mapping[str, MemberPlan], way: transition.Way, layout: Layout) -> List[str]:
    """Return what the user should know of the members, and of the way to the plan."""
    members, found = judged.members, judged.found
    vips = [vip.address for vip in found.vips]
    leaving = [f"{each.name} is no longer a member: its router is stopped first." for each in departed(members, vips)]
    return [
        *silent.sentences(members),
        *judged.without_effect,
        *found.warnings,
        *resolver.warnings(found.resolver),
        *(broadcast_domain.warnings(members, found.vips, found.placements) if found.has_vrrp else []),
        *broadcast_domain.warnings(members, found.vips, found.senders),
        *other_engine.sentences(members, {choice.engine for choice in judged.choices.values()}),
        *follow.differing(found.follow, members),
        *planes.sentences(members, planned, vips),
        *meanwhile.given_up(members, vips),
        *meanwhile.statements_lost(members, layout.prefix, layout.schema),
        *leaving,
        *way.warnings,
        *meanwhile.handovers(planned, way.order),
        *meanwhile.members_let_go(members),
        *static_pods.sentences(members),
    ]


def _refused(layout: Layout, faults: Faults) -> Plan:
    return Plan(list(dict.fromkeys(as_role_variables(fault, layout.prefix) for fault in faults)))


def forecast_input(drafted: Plan) -> Dict[str, Any]:
    """Return what `forecast.forecast` takes."""
    return {
        "vips": [{**vip._asdict(), "lasting": direct.lasting(vip, drafted.members)} for vip in drafted.vips],
        "members": {
            name: {
                "instances": member.router.instances,
                "links": drafted.links.get(name, {}),
                "engine": member.engine,
                "resigns_when_killed": member.resigns_when_killed,
                "sync_groups": member.router.sync_groups,
            }
            for name, member in drafted.members.items()
        },
        "track": {
            "scripts": [script for member in drafted.members.values() for script in member.router.scripts],
            "files": [question for member in drafted.members.values() for question in member.questions],
        },
        "watched": drafted.watched,
    }
