# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A MASTER/BACKUP pair: dedicated hosts that balance services and carry their VIPs. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    address,
    anything,
    boolean,
    integer,
    list_of,
    number,
    one_of,
    place_of,
    text,
)
from ..._agent.follow.haproxy_file import place
from ..._shared import engines
from ..bgp import announcing
from ..bgp import settings as reach
from ..forecast.forecast import Progress, unseen
from ..layouts import checks, follow, planner, resolver
from ..layouts.checked_vips import CheckedVips
from ..layouts.layout import Draft, Layout
from ..layouts.pasting import PLATFORMS
from ..members import loops
from ..members.hosts import Member, find_existing, find_placements, find_senders, priorities
from ..members.subnets import Placement
from ..model import answers, binds, destinations, peers, raw_binds, values
from ..model.plan import Plan, Vip
from ..model.services import ANY, SERVICE, read_services
from . import api as pair_api
from . import direct as pair_direct
from . import links, one_instance, presets
from . import peers as pair_peers
from .pair import TRACKED, Pair
from .vips import read_vips

CHECKS = "pair_checks"
Placements = Dict[str, Dict[str, Placement]]  # by member and address of a VIP

SETTINGS = {
    "vips": Field(anything, []),
    "vrid": Field(integer(1, 255, "a VRID")),
    "masters": Field(anything, []),
    "infra_nodes": Field(anything, []),
    "preset": Field(values.optional(one_of(*presets.PRESETS)), ""),
    "bootstrap": Field(values.optional(address), ""),
    "bootstrap_complete": Field(boolean, False),
    "machine_networks": SERVICE["allow"],
    "api_names": Field(list_of(values.host_name), []),
    "platform": Field(values.optional(one_of(*PLATFORMS)), ""),
    "services": Field(anything),
    "interface": Field(values.optional(values.interface), ""),
    "vrrp_interface": Field(values.optional(values.interface), ""),
    "engine": Field(anything, engines.AUTO),  # read for each member
    "auth_pass": Field(text, "", secret=True),
    "vrrp_version": Field(integer(2, 3, "a VRRP version"), 2),
    "advert_interval": Field(number(0.01, 255, " seconds"), 1),
    "preempt": Field(boolean, True),
    "preempt_delay": Field(number(0, 1000, " seconds"), 0),
    "priorities": Field(list_of(integer(1, 254, "a priority")), []),
    "multicast": Field(boolean, False),
    "track_weight": Field(integer(-253, 253, "a weight"), 0),
    "track_interval": Field(number(0.1, 3600, " seconds"), 2),
    "track_fall": Field(integer(1, 100), 1),
    "track_rise": Field(integer(1, 100), 1),
    "track_events": Field(boolean, True),
    "down_file": Field(values.optional(values.down_file), "/run/haproxy.down"),
    "answer_port": answers.PORT_FIELD._replace(default=answers.PORT),
    "peers_port": peers.PORT_FIELD,
    "metrics_file": Field(values.optional(values.metrics_file), ""),
    "reload_certificates": Field(boolean, False),
    "checks": Field(anything, []),
    "sync": Field(boolean, False),
    "one_instance": Field(boolean, False),
    "notify": Field(values.optional(values.program), ""),
    **reach.SETTINGS,
    **follow.SETTINGS,
    **follow.OF_PAIR,
    **resolver.SETTINGS,
    **resolver.OF_PAIR,
}


def read_pair(members: List[Member], settings: Dict[str, Any], faults: Faults) -> Optional[Draft]:
    """Return the pair; None where it has too few members."""
    names = [member["name"] for member in members]
    if len(names) < 2:
        faults.append(f"The pair has {len(names)} member ({', '.join(names)}): two or more are needed.")
        return None
    vips = read_vips(settings, names, find_existing(members), faults)
    services, planes = _services(settings, vips, members, faults)
    bgp, placements, senders = _reach(settings, vips, members, faults)
    checked = _checked(settings, vips, placements, members, faults)
    ranks = _priorities(settings, len(names), faults)
    direct_ones = {} if faults else {at: {**services[at], "plane": plane} for at, plane in planes.items()}
    own = {place_of("pair_services", at, service): service for at, service in direct_ones.items()}
    plane = pair_direct.read(settings, own, vips, placements, members, ranks, faults)
    told = pair_peers.read(settings, placements, services, faults)
    pair = Pair(settings, vips, placements, services, checked, ranks, plane, told, senders)
    return _draft(pair, members, bgp, faults)


def _draft(pair: Pair, members: List[Member], bgp: Optional[announcing.Bgp], faults: Faults) -> Draft:
    """Return what the members of a pair are, besides what all layouts have."""
    settings, vips, services = pair.settings, pair.vips, pair.services
    own_resolver = resolver.of_pair(settings, members, pair.placements, _has_api(settings), faults)
    return Draft(
        vips=vips,
        placements=pair.placements,
        targets=pair.targets(),
        listeners=pair.listeners,
        balancer=pair.balancer,
        router=pair.router,
        clients=lambda _name: pair.clients(),
        missing_programs=pair.missing_programs,
        watched={} if faults else pair.watched(),
        weighted=pair.checked.weighted,
        warnings=_warnings(pair, members, bgp),
        checks=lambda name: [each["name"] for each in pair.checked.scripts(name)],
        asked=lambda _name: pair.asked,
        snippet=pair_api.snippet(presets.names(settings), settings, vips),
        follow=_follow(settings, services, vips, members, faults),
        resolver=own_resolver,
        direct=pair.direct,
        bgp=bgp,
        sends=[
            *destinations.of_services(services, "pair_services", loops.known_of(vips, members)),
            *pair.checked.sends(resolver.answered(own_resolver), "pair"),
            *(bgp.sends if bgp else ()),
        ],
        senders=pair.senders,
    )


def _warnings(pair: Pair, members: List[Member], bgp: Optional[announcing.Bgp]) -> List[str]:
    settings, checked = pair.settings, pair.checked
    return [
        *presets.without_effect(settings),
        *pair_api.certificate_warnings(presets.names(settings), members),
        *checked.at_once(settings["preempt"] and not bgp),
        *announcing.warnings(bgp, checked.weighted),
        *([] if bgp else pair_direct.warnings(pair.direct, pair.priorities)),
        *pair_direct.out_of_reach(pair.direct, pair.services, pair.vips),
        *links.warnings(pair.vips, pair.placements, pair.senders, checked),
        *follow.warnings(settings, "pair", presets.kind(settings)),
    ]


LAYOUT = Layout("pair", SETTINGS, ["vips"], read_pair, "pair")


def plan(members: List[Member], progress: Progress = unseen) -> Plan:
    """Return the plan of a pair, or the faults of one that fails in some single failure."""
    return planner.plan(LAYOUT, members, progress)


def _reach(
    settings: Dict[str, Any], vips: List[Vip], members: List[Member], faults: Faults
) -> Tuple[Optional[announcing.Bgp], Placements, Placements]:
    """Return what is announced by BGP, where the members carry the VIPs, and from where they advertise them."""
    bgp = announcing.read(members, vips, settings, "pair", faults)
    if bgp and not bgp.beside_vrrp:
        placements, senders = bgp.placements, {}
    else:
        placements = find_placements(members, vips, "pair", faults)
        senders = find_senders(members, vips, "pair", faults)
    faults += one_instance.faults(vips, placements) if settings["one_instance"] else []
    return bgp, placements, senders


def _services(
    settings: Dict[str, Any], vips: List[Vip], members: List[Member], faults: Faults
) -> Tuple[List[Dict[str, Any]], Dict[int, str]]:
    """Return the user's own services and those of the preset, and the planes of those that are not only proxied."""
    own, place = [] if settings["services"] is None else settings["services"], "pair_services"
    missing = presets.missing(settings, faults)
    faults.extend(missing)
    if missing:
        return [], {}
    if own == [] and not presets.fronts(settings):
        faults.append(f"{place} is empty, so that nothing would be served: name at least one service.")
    given = [*own, *presets.services(settings)] if isinstance(own, list) else own
    given, planes = pair_direct.planes(given, place, faults)
    services, wrong = read_services(given, place)
    wrong += loops.faults(services, vips, members, place)
    answering = binds.of_answers(settings["answer_port"], "pair_answer_port")
    wrong += binds.clashes(services, answering, raw_binds.of_services(services, place))
    wrong += presets.shut_out(settings, services)
    faults.extend(presets.as_written(fault, settings) for fault in wrong)
    if any(vip.version == 6 for vip in vips):
        for service in services:
            if service["bind"] == [ANY]:
                service["bind"] = [ANY, "::"]
    return services, planes


def _has_api(settings: Dict[str, Any]) -> bool:
    return any(front.is_api for front in presets.of_masters(settings))


def _follow(
    settings: Dict[str, Any],
    services: List[Dict[str, Any]],
    vips: List[Vip],
    members: List[Member],
    faults: Faults,
) -> Optional[follow.Follow]:
    """Return what the pair follows: the services that the user names, or those of the preset's masters."""
    masters = presets.of_masters(settings)
    names = list(settings["follow_services"]) or [front.name for front in masters]
    # No check shows which port of okd3's masters is the API's; they have one.
    asked = [front.name for front in masters if front.is_api] or [front.name for front in masters[:1]]
    api = [
        f"https://{place(server['address'], server['port'])}"
        for service in services
        if service["name"] in asked
        for server in service["servers"]
        if server["address"]
    ]
    addresses = [vip.address for vip in vips]
    balancers = set(loops.own_addresses(members)).difference(addresses)
    kind = presets.kind(settings)
    return follow.read(settings, "pair", services, names, api, addresses, faults, balancers, members, kind)


def _checked(
    settings: Dict[str, Any],
    vips: List[Vip],
    placements: Placements,
    members: List[Member],
    faults: Faults,
) -> CheckedVips:
    """Return what the members check besides the balancer."""
    found = checks.read_checks(checks.CHECK, settings["checks"], CHECKS, TRACKED, faults)
    checked = CheckedVips(
        CHECKS, found, vips, placements, in_group=settings["sync"] and len({vip.name for vip in vips}) > 1
    )
    faults += checked.faults()
    if checked.in_group:
        weights = {"pair_track_weight": settings["track_weight"]}
        weights.update((f"{CHECKS} ({check.name}).weight", check.weight) for check in found)
        faults += [
            f"{place} is {weight}, and no weight counts in a sync group (pair_sync): use 0 (FAULT)."
            for place, weight in weights.items()
            if weight
        ]
    return checked


def _priorities(settings: Dict[str, Any], count: int, faults: Faults) -> List[int]:
    """Return the priorities by rank: the first is for the first member of a VIP."""
    given: List[int] = settings["priorities"]
    if given and len(given) != count:
        faults.append(f"pair_priorities has {len(given)} entries for {count} members: one for each, best first.")
    if given != sorted(given, reverse=True):
        faults.append(f"pair_priorities is {given}: the first is the holder's and must be the highest.")
    return given or priorities(count)
