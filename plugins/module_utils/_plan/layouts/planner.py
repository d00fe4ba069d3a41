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

from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults, Field, boolean, number, one_of, read, shown
from ..._shared import engines
from ..bgp import announcing, change
from ..bgp import forecast as bgp_forecast
from ..bgp import order as bgp_order
from ..bgp import settings as reach
from ..bgp.gate import gate
from ..change import changed_checks, delivery, meanwhile, order, still_asked, transition
from ..change.delivery import Delivery
from ..change.turns import Turn, turns
from ..change.undo import taken_over, undo
from ..forecast import drilled, forecast, servers
from ..members import (
    broadcast_domain,
    engine_choice,
    identity,
    loops,
    openings,
    other_engine,
    silent,
    static_pods,
    unused,
)
from ..members.departed import departed, record
from ..members.engine_choice import Choice
from ..members.hosts import (
    Member,
    choose_engines,
    disagreements,
    held_vips,
    host_faults,
    known_pass,
    served_elsewhere,
    unfit_files,
    vrrp_conflicts,
)
from ..members.openings import Clients
from ..members.subnets import Placement, placeholder_host
from ..model import agent, answers, bind_line, destinations, drill_records, tls_content, values
from ..model.instances import read_instances, shared_faults
from ..model.plan import Balancer, Expected, MemberPlan, Move, Plan, Router, Undo, Vip
from ..model.variables import as_role_variables, read_given
from . import direct, follow, moving, resolver

INTERFACES = ("interface", "vrrp_interface")
PER_MEMBER = (*INTERFACES, "engine", *reach.PER_MEMBER)  # the settings that may differ between members
# What the tasks of the layouts read; each member has its own.
TASKS = {
    "state": Field(one_of("present", "absent"), "present"),
    "listen": Field(number(0, 3600, " seconds"), 1.5),
    "firewall": Field(boolean, True),
    "verify": Field(boolean, True),
    "break_lock": Field(boolean, False),
    "accept_split": Field(boolean, False),
    "accept_routed_only": Field(boolean, False),
    "downgrade": Field(boolean, False),
    "retired": Field(values.words, []),
    "undo_after": Field(number(0, 3600, " seconds"), 35),
}


class Draft(NamedTuple):
    """What a layout has read from its variables."""

    vips: List[Vip]
    placements: Dict[str, Dict[str, Placement]]  # by member and address of a VIP
    targets: List[List[Any]]  # ``[address, port]``: every service through every VIP
    listeners: Callable[[str], List[Dict[str, Any]]]  # what a member's balancer binds: services and monitors
    balancer: Callable[[str, str], Balancer]  # of a member, with an engine
    router: Callable[[str, str], Router]
    clients: Callable[[str], Clients]  # of a member, by the port to which they connect
    missing_programs: Callable[[Member, str], Faults]  # that a member needs with an engine, and no role installs
    watched: Dict[str, Dict[str, Any]] = {}  # as `forecast.forecast` takes it
    weighted: List[str] = []  # as the plan has it
    warnings: List[str] = []
    checks: Callable[[str], List[str]] = lambda _name: []  # the names of the user's checks on a member
    asked: Callable[[str], List[answers.Check]] = lambda _name: []  # the checks that are run all the time
    answers: still_asked.Answers = still_asked.Answers()
    snippet: List[str] = []  # as the plan has it
    follow: Optional[follow.Follow] = None
    resolver: Optional[resolver.Resolver] = None
    direct: Optional[direct.Direct] = None
    mends: Mapping[str, str] = MappingProxyType({})  # by VIP, as `broadcast_domain.faults` takes them
    bgp: Optional[announcing.Bgp] = None
    sends: Sequence[destinations.Destination] = ()
    senders: Dict[str, Dict[str, Placement]] = {}  # like `placements`, where VRRP is on links of its own

    @property
    def advertising(self) -> Dict[str, Dict[str, Placement]]:
        """From where the members advertise."""
        return self.senders or self.placements

    def clients_of_members(self, name: str) -> List[str]:
        """Return the addresses by which the other members are clients of a VIP, where they are no peers."""
        others = broadcast_domain.peers(name, self.vips, self.placements) if self.senders else {}
        return sorted({address for each in others.values() for address in each})

    @property
    def has_vrrp(self) -> bool:
        return self.bgp is None or self.bgp.beside_vrrp


class Layout(NamedTuple):
    """What distinguishes one layout from another."""

    prefix: str  # of its variables
    schema: Mapping[str, Field]  # of its variables, without the prefix
    vips: List[str]  # the variables that name VIPs
    read: Callable[[List[Member], Dict[str, Any], Faults], Optional[Draft]]  # None where there are too few members
    whole: str  # what its members are together


class Judged(NamedTuple):
    """What is known before a plan is made: the members with their settings, what the layout read, and the engines."""

    members: List[Member]
    settings: Dict[str, Any]
    found: Draft
    choices: Dict[str, Choice]
    delivery: Delivery
    without_effect: List[str]  # a sentence for each variable that nothing reads with this reach

    @property
    def held(self) -> Dict[str, int]:
        """How many VIPs each member holds now, also of those that the plan drops."""
        return {name: len(vips) for name, vips in held_vips(self.members, self.found.vips).items()}


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
    faults = _task_faults(layout, given)
    judged = None if faults else _judge(layout, given, faults)
    if judged is None or faults:
        return _refused(layout, faults)
    password = known_pass(judged.members)
    planned = {member["name"]: _member(member, judged, password) for member in judged.members}
    for member in judged.members:
        name, member_plan = member["name"], planned[member["name"]]
        faults += still_asked.faults(member_plan.balancer, _kept(member, judged, member_plan.balancer), name)
        faults += read_instances(member_plan.router.instances, f"{name}: instances")[1]
        faults += [f"{name}: {fault}" for fault in unused.faults(member["host"], member_plan.unused)]
    faults += static_pods.faults(judged.members, planned, layout.prefix)
    if faults:
        return _refused(layout, faults)
    move = change.move(judged.members, planned, judged.settings["reach"], judged.found.vips)
    planned = moving.on_the_way(planned, move)
    every = moving.as_they_run(turns(judged.members, planned, password, judged.found.vips), planned)
    way = _way(layout.prefix, given, judged, every)
    if way.faults:
        return _refused(layout, way.faults)
    way = moving.way(way, judged.members, judged.found.vips, move)
    whole = _whole(layout, judged, _in_order(judged, planned, every, way, move), way, move)
    return whole._replace(links={turn.name: dict(turn.links) for turn in every})


def vips(layout: Layout, given: List[Member]) -> List[Vip]:
    """Return the VIPs that members would get, whatever is wrong with the rest; none where it is no layout at all."""
    judged = _judge(layout, given, [])
    return judged.found.vips if judged else []


def _task_faults(layout: Layout, given: List[Member]) -> Faults:
    """Return what is wrong with the members' names, with what only tasks read, and with what stands for a host."""
    faults = [*identity.of_members(given, layout.prefix), *silent.faults(given)]
    of_host = {key: layout.schema[key] for key in INTERFACES if key in layout.schema}
    for member in given:
        settings = member["settings"]
        read_given(TASKS, settings, layout.prefix, faults)
        read(of_host, {key: settings.get(key) for key in of_host}, layout.prefix, faults)
        address = member.get("address", "")
        if not isinstance(address, str):
            faults.append(f"{member['name']}: ansible_host is {shown(address)}: an address or a name is required.")
    return faults


def _judge(layout: Layout, given: List[Member], faults: Faults) -> Optional[Judged]:
    """Return what was read, and append what is wrong with it; None where it is no layout at all."""
    members = [_complete(layout, rank, member) for rank, member in enumerate(silent.complete(given))]
    faults += disagreements(members, PER_MEMBER, layout.prefix)
    settings = read(layout.schema, members[0]["settings"] if members else {}, layout.prefix, faults)
    without_effect = reach.without_effect(settings, layout.schema, layout.vips, layout.prefix)
    settings = reach.without_vrrp(settings, layout.schema)
    found = layout.read(members, settings, faults)
    if found is None:
        return None
    delivered = delivery.of(settings, layout.prefix, faults)
    choices = _choices(members, delivered, layout.prefix, faults)
    faults += delivery.faults(settings, members, delivered, choices)
    faults += destinations.faults(found.sends, destinations.owners(loops.known_of(found.vips, members), layout.whole))
    faults += shared_faults(settings, [vip.version for vip in found.vips], layout.prefix)
    faults += _host_faults(layout.prefix, members, found, choices, delivered)
    for member in members:
        faults += unfit_files(member, layout.prefix, served_elsewhere(member, members))
    return Judged(members, settings, found, choices, delivered, without_effect)


def _choices(members: List[Member], delivered: Delivery, prefix: str, faults: Faults) -> Dict[str, Choice]:
    """Return what each member runs, and append what is wrong with it."""
    if delivered.is_pod:
        return delivery.engines(members, prefix, faults)
    return delivery.with_units(members, choose_engines(members, prefix, faults))


def _way(prefix: str, given: List[Member], judged: Judged, every: List[Turn]) -> transition.Way:
    """Return the way from what the members run; one that splits is refused unless the user accepts that."""
    unsafe = delivery.unsafe_moves(every, prefix, judged.delivery.is_pod)
    if unsafe:
        return transition.Way(unsafe)
    accepts_split = bool(boolean(given[0]["settings"].get("accept_split", False))[0])
    carrying = {turn.name: judged.choices[turn.name] for turn in every if turn.after}
    order = engine_choice.migration_order(carrying, judged.held)
    way = transition.way(every, order, prefix, accepts_split)
    return way._replace(warnings=[*way.warnings, *meanwhile.on_the_way(every, way)])


def _in_order(
    judged: Judged, planned: Dict[str, MemberPlan], every: List[Turn], way: transition.Way, move: Move
) -> Dict[str, MemberPlan]:
    """Return the members' plans with what the order of the run needs."""
    if not judged.found.has_vrrp and not move.to:
        return bgp_order.proved(planned)
    found = {}
    for member, turn in zip(judged.members, every):
        own, joins = planned[turn.name], turn.name in way.joining
        kept = still_asked.listening(_kept(member, judged, own.balancer))
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
        warnings=[*_warnings(judged, planned, way, layout), *move.told],
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
        return bgp_order.undo(judged.members, planned, judged.found.vips, [*taken_over(judged.members, planned)], move)
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
        *meanwhile.given_up(members, vips),
        *meanwhile.statements_lost(members, layout.prefix, layout.schema),
        *leaving,
        *way.warnings,
        *meanwhile.handovers(planned, way.order),
        *meanwhile.members_let_go(members),
        *static_pods.sentences(members),
    ]


def _host_faults(
    prefix: str, members: List[Member], found: Draft, choices: Mapping[str, Choice], delivered: Delivery
) -> Faults:
    """Return what the hosts, and their engines, have against the plan. The programs of pods are in their images."""
    faults = identity.of_addresses(members, found.vips, found.placements)
    faults += identity.shared(members, found.senders) if found.senders else []
    if found.bgp:
        names = [member["name"] for member in members if found.direct and found.direct.server(member["name"])]
        faults += announcing.as_servers(names, prefix)
    if found.has_vrrp:
        faults += broadcast_domain.faults(members, found.vips, found.placements, f"{prefix}_interface", found.mends)
        if found.senders:
            faults += broadcast_domain.faults(members, found.vips, found.senders, f"{prefix}_vrrp_interface", {})
        faults += vrrp_conflicts(members, found.vips, found.advertising)
    faults += resolver.abandoned(found.resolver, members, [vip.address for vip in found.vips], prefix)
    faults += resolver.unheard(found.resolver, members)
    for member in members:
        choice = choices[member["name"]]
        faults += host_faults(member, found.listeners(member["name"]), choice)
        faults += [] if delivered.is_pod else found.missing_programs(member, choice.engine)
        if choice.engine == engines.AGENT:
            services = found.balancer(member["name"], choice.engine).services
            faults += [f"{member['name']}: {fault}" for fault in agent.beyond(services, prefix)]
    return faults


def _refused(layout: Layout, faults: Faults) -> Plan:
    return Plan(list(dict.fromkeys(as_role_variables(fault, layout.prefix) for fault in faults)))


def _complete(layout: Layout, rank: int, member: Member) -> Member:
    """Return a member with the settings of its layout alone, and with a placeholder for a host that was not read."""
    settings = {key: value for key, value in member["settings"].items() if key in layout.schema}
    for key in INTERFACES:
        if key == "interface" or key in settings:
            settings[key] = settings[key] if isinstance(settings.get(key), str) else ""  # which `_task_faults` judges
    host = member["host"]
    if host is None:
        lists = [settings.get(name) for name in layout.vips]
        vips = [vip for some in lists if isinstance(some, list) for vip in some]
        names = [settings.get(key, "") for key in INTERFACES]
        host = placeholder_host(vips, member["address"], rank, *names)
    return {**member, "settings": settings, "host": host}


def _member(member: Member, judged: Judged, password: str) -> MemberPlan:
    name, running = member["name"], member["host"].get("instances", [])
    choice, found = judged.choices[name], judged.found
    balancer = _balancer(member, judged)
    kept = _kept(member, judged, balancer)
    watching = found.router(name, choice.engine)
    router = engine_choice.accepting_keepalived(watching, choice.engine) if found.has_vrrp else announcing.NO_ROUTER
    units, others = judged.delivery.units(choice.engine), found.clients_of_members(name)
    runs = (bool(balancer.services), bool(router.instances))
    following = follow.planned(found.follow, choice.engine, runs[0], resolver.followed(found.resolver))
    planned = MemberPlan(
        engine=choice.engine,
        replaces=choice.replaces,
        moves_from=choice.moves_from,
        replaced_programs=list(engines.REPLACED[choice.replaces]),
        resigns_when_killed=judged.delivery.is_pod or engine_choice.will_have_hook(member),
        balancer=balancer,
        router=router,
        firewall=openings.firewall(found.clients(name), router, others),
        meanwhile=still_asked.meanwhile(balancer, kept, found.clients(name), router, others),
        asked=still_asked.to_answer(_asked(member, judged), kept, watching),
        expected=Expected(
            vips=found.vips,
            services=[bind_line.expected(each) for each in found.listeners(name)],
            targets=found.targets,
            units=[unit for unit, it_runs in zip(units, runs) if it_runs],
            programs=list(engines.PROGRAMS[choice.engine]),
            down_file=balancer.down_file,
            peered=[[peer["address"], balancer.peers_port] for peer in balancer.peers if peer["name"] != name],
            settle=transition.settle(running, router.instances, password),
            peers=broadcast_domain.peers(name, found.vips, found.placements),
        ),
        follow=following,
        resolver=resolver.planned(found.resolver, name, bool(following)),
        questions=answers.questions(choice.engine, found.asked(name)),
        direct=found.direct.file(name) if found.direct else {},
        direct_memory=found.direct.memory if found.direct else 0,
        direct_server=found.direct.server(name) if found.direct else {},
        unused=unused.unused(member["host"], choice.engine, *runs, announces=bool(found.bgp and watching.instances)),
        pods=judged.delivery.options,
    )
    if found.bgp:
        planned = found.bgp.announced(name, planned, gate(choice.engine, watching, found.asked(name)))
    return _with_checks(member, found.checks(name), planned)


def _balancer(member: Member, judged: Judged) -> Balancer:
    """Return a member's balancer, with the servers that follow has given it."""
    name, found = member["name"], judged.found
    given = found.balancer(name, judged.choices[name].engine)
    services, contents = tls_content.taken(given.services)
    return given._replace(
        services=follow.kept(services, found.follow, follow.followed_on(name, judged.members)),
        contents=contents,
        inventory_servers=follow.inventory_servers(given.services, found.follow),
        served_elsewhere=served_elsewhere(member, judged.members),
        down_file="" if judged.delivery.is_pod else given.down_file,  # a pod's is its own
    )


def _kept(member: Member, judged: Judged, planned: Balancer) -> Balancer:
    """Return what a member's balancer keeps while something asks for it."""
    return still_asked.to_keep(planned, _asked(member, judged), judged.found.answers)


def _asked(member: Member, judged: Judged) -> still_asked.Asked:
    """Return what is asked of the balancer that runs on a member."""
    return still_asked.asked(member, judged.choices[member["name"]])


def _with_checks(member: Member, names: List[str], planned: MemberPlan) -> MemberPlan:
    """Return a member's plan with the checks that change. Those of pods run in their images, and not on the host."""
    if member.get("outside_limit") or planned.pods:
        return planned
    checks = changed_checks.changed(member["host"], planned, names)
    reloaded = [] if planned.replaces else [check for check in checks if check["lives"]]  # one that starts says at once
    expected = planned.expected._replace(judged=changed_checks.judged(reloaded))
    return planned._replace(checks=checks, expected=expected)


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
