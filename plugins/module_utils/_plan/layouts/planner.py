# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The steps from the members of a layout to its plan, the same for every layout.

Pure: the same members give the same plan. Faults are collected, never raised, so that a user sees all of them at once.

A member is ``{name, address, settings, host, outside_limit}``: its name in the inventory, the address by which Ansible
reaches it, the role's variables without their prefix as this member has them, what `host_info` returned there, or None
if it was not read, and whether this run leaves it as it is.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from ..._agent.config.schema import Faults, Field, read
from ..._shared import engines
from ..forecast import forecast
from ..model.instances import auth_pass_faults, read_instances
from ..model.plan import Balancer, Expected, Firewall, MemberPlan, Plan, Router, Vip
from ..model.variables import as_role_variables
from . import engine_choice, transition
from .departed import departed, record
from .engine_choice import Choice
from .members import Member, choose_engines, disagreements, held_vips, host_faults, known_pass, vrrp_conflicts
from .subnets import Placement, placeholder_host

PER_MEMBER = ("interface", "engine")  # the settings that may differ between members


class Draft(NamedTuple):
    """What a layout has read from its variables."""

    vips: List[Vip]
    placements: Dict[str, Dict[str, Placement]]  # by member and address of a VIP
    targets: List[List[Any]]  # ``[address, port]``: every service through every VIP
    listeners: Callable[[str], List[Dict[str, Any]]]  # what a member's balancer binds: services and monitors
    balancer: Callable[[str, str], Balancer]  # of a member, with an engine
    router: Callable[[str, str], Router]
    ports: Callable[[str], List[int]]  # to which clients of a member connect
    missing_programs: Callable[[Member], Faults] = lambda _member: []  # that the agent needs and does not install
    watched: Dict[str, Dict[str, Any]] = {}  # as `forecast.forecast` takes it
    warnings: List[str] = []


class Layout(NamedTuple):
    """What distinguishes one layout from another."""

    prefix: str  # of its variables
    schema: Mapping[str, Field]  # of its variables, without the prefix
    vips: List[str]  # the variables that name VIPs
    read: Callable[[List[Member], Dict[str, Any], Faults], Optional[Draft]]  # None where there are too few members


def plan(layout: Layout, given: List[Member]) -> Plan:
    """Return the plan of a layout, or the faults of one that fails in some single failure."""
    drafted = draft(layout, given)
    if drafted.faults:
        return drafted
    result = forecast.forecast(forecast_input(drafted))
    if result["faults"]:
        return _refused(layout, result["faults"])
    outages = result["outages"]
    return drafted._replace(outages=outages, table=forecast.table(forecast_input(drafted), outages))


def draft(layout: Layout, given: List[Member]) -> Plan:
    """Return the plan without its forecast: it may still fail in some failure."""
    members = [_complete(layout, rank, member) for rank, member in enumerate(given)]
    faults = disagreements(members, PER_MEMBER, layout.prefix)
    settings = read(layout.schema, members[0]["settings"] if members else {}, layout.prefix, faults)
    found = layout.read(members, settings, faults)
    if found is None:
        return _refused(layout, faults)
    choices = choose_engines(members, layout.prefix, faults)
    faults += auth_pass_faults(settings["auth_pass"], f"{layout.prefix}_auth_pass")
    faults += vrrp_conflicts(members, found.vips, found.placements)
    for member in members:
        choice = choices[member["name"]]
        faults += host_faults(member, found.listeners(member["name"]), choice)
        faults += found.missing_programs(member) if choice.engine == engines.AGENT else []
    if faults:
        return _refused(layout, faults)
    password = known_pass(members)
    planned = {member["name"]: _member(member, choices[member["name"]], found, password) for member in members}
    for name, member_plan in planned.items():
        faults += read_instances(member_plan.router.instances, f"{name}: instances")[1]
    instances = {name: member_plan.router.instances for name, member_plan in planned.items()}
    faults += transition.split_by_limit(members, instances, password)
    if faults:
        return _refused(layout, faults)
    held = held_vips(members, found.vips)
    running = {member["name"]: member["host"].get("instances", []) for member in members}
    alone = transition.sole_router(running, instances, password, held)
    if alone and choices[alone].replaces:
        replaced_router = found.router(alone, choices[alone].replaces)
        planned[alone] = planned[alone]._replace(replaced_router=replaced_router)
    carrying = {name: choices[name] for name in planned if planned[name].router.instances}
    order = engine_choice.migration_order(carrying, held)
    former = departed(members)
    meanwhile = transition.on_the_way(alone, running.get(alone, []), instances.get(alone, []))
    leaving = [f"{each.name} was a member and is none any more: its router is stopped first." for each in former]
    return Plan(
        faults=[],
        warnings=[*found.warnings, *leaving, *meanwhile],
        vips=found.vips,
        members=planned,
        targets=found.targets,
        watched=found.watched,
        advert_interval=settings["advert_interval"],
        migration_order=order,
        sole_router=alone,
        departed=former,
        record=record(members, {name: member_plan.router.sources for name, member_plan in planned.items()}),
        engines=engine_choice.table(carrying, order),
    )


def _refused(layout: Layout, faults: Faults) -> Plan:
    return Plan(list(dict.fromkeys(as_role_variables(fault, layout.prefix) for fault in faults)))


def _complete(layout: Layout, rank: int, member: Member) -> Member:
    """Return a member with the settings of its layout alone, and with a placeholder for a host that was not read."""
    settings = {key: value for key, value in member["settings"].items() if key in layout.schema}
    host = member["host"]
    if host is None:
        lists = [settings.get(name) for name in layout.vips]
        vips = [vip for some in lists if isinstance(some, list) for vip in some]
        host = placeholder_host(vips, member["address"], rank, settings.get("interface", ""))
    return {**member, "settings": settings, "host": host}


def _member(member: Member, choice: Choice, found: Draft, password: str) -> MemberPlan:
    name, running = member["name"], member["host"].get("instances", [])
    balancer, router = found.balancer(name, choice.engine), found.router(name, choice.engine)
    units = engines.UNITS[choice.engine]
    runs = (bool(balancer.services), bool(router.instances))
    return MemberPlan(
        engine=choice.engine,
        replaces=choice.replaces,
        replaced_programs=list(engines.REPLACED[choice.replaces]),
        balancer=balancer,
        router=router,
        firewall=Firewall(found.ports(name), router.peers, (router.interfaces or [""])[0]),
        expected=Expected(
            vips=found.vips,
            services=found.listeners(name),
            targets=found.targets,
            units=[unit for unit, it_runs in zip(units, runs) if it_runs],
            programs=list(engines.PROGRAMS[choice.engine]),
            down_file=balancer.down_file,
            settle=transition.settle(running, router.instances, password),
        ),
    )


def forecast_input(drafted: Plan) -> Dict[str, Any]:
    """Return what `forecast.forecast` takes."""
    return {
        "vips": [vip._asdict() for vip in drafted.vips],
        "members": {
            name: {"instances": member.router.instances, "engine": member.engine}
            for name, member in drafted.members.items()
        },
        "track": {"scripts": [script for member in drafted.members.values() for script in member.router.scripts]},
        "watched": drafted.watched,
    }
