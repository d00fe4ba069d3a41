# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A MASTER/BACKUP pair: dedicated hosts that balance services and carry their VIPs. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

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
from ..._shared import engines, events
from ..bgp import announcing
from ..bgp import settings as reach
from ..forecast import servers
from ..forecast.forecast import HANGING, HAPROXY, RELOADS, SLOW, Progress, unseen
from ..layouts import checks, direct, follow, planner, resolver
from ..layouts.checked_vips import CheckedVips
from ..layouts.pasting import PLATFORMS
from ..members import loops, openings
from ..members.hosts import Member, find_existing, find_placements, find_senders, priorities
from ..members.subnets import Placement
from ..model import answers, binds, destinations, peers, raw_binds, values
from ..model.plan import Balancer, Plan, Router, Vip
from ..model.services import ANY, SERVICE, backends, listeners, read_services
from . import api as pair_api
from . import direct as pair_direct
from . import links, presets
from . import peers as pair_peers
from .vips import read_vips

ALIVE = "haproxy_alive"  # the script: killall -0 haproxy
DOWN = "haproxy_down"  # the track file that haproxy's unit writes
CHECKS = "pair_checks"
GROUP = "pair"  # the sync group of all VIPs
TRACKED = (ALIVE, answers.NAME, DOWN, direct.DOWN)  # what the pair itself tracks

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
    "notify": Field(values.optional(values.program), ""),
    **reach.SETTINGS,
    **follow.SETTINGS,
    **follow.OF_PAIR,
    **resolver.SETTINGS,
    **resolver.OF_PAIR,
}


class Pair(NamedTuple):
    """What all members share."""

    settings: Dict[str, Any]
    vips: List[Vip]
    placements: Dict[str, Dict[str, Placement]]
    services: List[Dict[str, Any]]
    checked: CheckedVips
    priorities: List[int]
    direct: Optional[direct.Direct] = None
    peers: Optional[Dict[str, Any]] = None  # as `peers.read` returns them
    senders: Dict[str, Dict[str, Placement]] = {}  # like the placements, where VRRP is on links of its own

    def sender(self, name: str, vip: Vip) -> Placement:
        return self.senders.get(name, {}).get(vip.address) or self.placements[name][vip.address]

    @property
    def down_file(self) -> str:
        """The track file; empty with a weight, which would count the same failure by the file and by the script."""
        settings = self.settings
        return settings["down_file"] if settings["track_events"] and not settings["track_weight"] else ""

    @property
    def answer_port(self) -> int:
        """Where the balancer is asked whether it hangs; 0 with a weight, for the same reason."""
        return 0 if self.settings["track_weight"] else int(self.settings["answer_port"])

    @property
    def asked(self) -> List[answers.Check]:
        return answers.of_balancer(self.answer_port)

    def balancer(self, _name: str, _engine: str) -> Balancer:
        known = self.peers or {"members": [], "port": self.settings["peers_port"]}
        own = {"peers": known["members"], "peers_port": known["port"]}
        return Balancer(self.services, down_file=self.down_file, answer_port=self.answer_port, **own)

    def clients(self) -> openings.Clients:
        """Return who may connect to which port. The peers are for the members alone."""
        members = {self.peers["port"]: [each["address"] for each in self.peers["members"]]} if self.peers else {}
        return {**members, **openings.of_listeners(listeners(self.services))}

    def router(self, name: str, engine: str) -> Router:
        """The balancer is tracked by a file, which its unit writes at once, by a script that polls, and by its answers.

        What the user has checked besides is tracked by every VIP.
        """
        script = {
            "name": ALIVE,
            "command": engines.ALIVE[engine],
            "interval": self.settings["track_interval"],
            "timeout": self.settings["track_interval"],
            "rise": self.settings["track_rise"],
            "fall": self.settings["track_fall"],
        }
        files = [{"name": DOWN, "path": self.down_file}] if self.down_file else []
        files += answers.track_files(engine, self.asked)
        files += self.direct.track_files if self.direct else []
        scripts = [script, *answers.scripts(engine, self.asked), *self.checked.scripts(name)]
        instances = [self._instance(name, vip, engine) for vip in self.vips]
        return Router(instances, scripts, files, self._sync_groups)

    @property
    def _sync_groups(self) -> List[Dict[str, Any]]:
        in_group = self.checked.in_group
        return [{"name": GROUP, "instances": [vip.name for vip in self.vips]}] if in_group else []

    def _instance(self, name: str, vip: Vip, engine: str) -> Dict[str, Any]:
        settings, rank = self.settings, vip.order.index(name)
        lowered = 0 if self.checked.in_group else answers.weight(self.priorities, settings["preempt"])
        asked = answers.tracked(engine, self.asked, lowered)
        tracked = self.checked.tracked(name, vip)
        carrier, sender = self.placements[name][vip.address].interface, self.sender(name, vip)
        is_apart = carrier != sender.interface
        # With a preempt delay, or without preemption, every member starts as Backup.
        is_master = rank == 0 and settings["preempt"] and not settings["preempt_delay"]
        return {
            "name": vip.name,
            "state": "MASTER" if is_master else "BACKUP",
            "interface": sender.interface,
            "vrid": vip.vrid,
            "version": 3 if vip.version == 6 else settings["vrrp_version"],
            "priority": self.priorities[rank],
            "advert_interval": settings["advert_interval"],
            "preempt": settings["preempt"],
            "preempt_delay": settings["preempt_delay"],
            "multicast": settings["multicast"],
            "source": sender.address,
            "peers": [self.sender(other, vip).address for other in vip.order if other != name],
            "addresses": [f"{vip.address}/{vip.held_as} dev {carrier}" if is_apart else vip.with_prefix],
            # Without the link of VRRP a member still serves: it may be a cable between the two, and one of them off.
            **({"dont_track_primary": True} if is_apart else {}),
            "track_scripts": [
                {"name": ALIVE, "weight": settings["track_weight"]},
                *asked["track_scripts"],
                *tracked["track_scripts"],
            ],
            "track_files": [
                *([{"name": DOWN, "weight": 0}] if self.down_file else []),
                *asked["track_files"],
                *(self.direct.tracked(vip, self.priorities[rank]) if self.direct else []),
            ],
            "track_interfaces": tracked["track_interfaces"],
            "notify": settings["notify"] or None,
        }

    @property
    def _back_up_ms(self) -> int:
        """How long it takes at most until a server is up again that could not be reached, with either engine."""
        every = [backend for service in self.services for _place, backend in backends(service, "")]
        rules = [servers.rules_of(each, engine, servers.Timeouts()) for each in every for engine in engines.UNITS]
        return round(1000 * max((each.back_after for each in rules), default=0))

    def watched(self) -> Dict[str, Dict[str, Any]]:
        """Return what each failure moves, as `forecast.forecast` takes it."""
        vips, others = [vip.name for vip in self.vips], self.checked.names
        back_up = self._back_up_ms
        harmless = {**RELOADS, events.SLOW_BACKEND: SLOW + back_up, events.DISK_FULL: 0}
        # A member without a network has no server when it has one again, and its VIPs. One that is cut off has been
        # Active all the time, and so waits for no preempt_delay.
        preempting = max(0, back_up - round(1000 * self.settings["preempt_delay"]))
        returning = dict.fromkeys((events.PORT_DOWN, events.LINK_FLAPPING), preempting)
        cut_off = {events.HOST_CUT: back_up, **returning}
        own = {"instances": vips, "blind_trackers": [direct.DOWN, *others], "harmless": harmless, "back_later": cut_off}
        found: Dict[str, Dict[str, Any]] = {"haproxy": {**HAPROXY, **own}}
        if self.answer_port:
            found["haproxy hangs"] = {
                **HANGING,
                "fatal": [*HANGING["fatal"], events.CONNTRACK_FULL],  # its checks cannot connect either
                "back_later": {events.CONNTRACK_FULL: preempting},
                "instances": vips,
                "blind_trackers": [ALIVE, DOWN, direct.DOWN, *others],
            }
        lost = self.direct.watched(self.vips, [ALIVE, answers.NAME, DOWN, *others]) if self.direct else {}
        return {**found, **lost, **self.checked.watched(TRACKED)}

    def targets(self) -> List[List[Any]]:
        """Return every service through every VIP that it is bound to: ``[address, port]``."""
        found = []
        for vip in self.vips:
            wildcard = "::" if vip.version == 6 else ANY
            for service in listeners(self.services):
                if wildcard in service["bind"] or vip.address in service["bind"]:
                    found.append([vip.address, service["port"]])
        return found


def read_pair(members: List[Member], settings: Dict[str, Any], faults: Faults) -> Optional[planner.Draft]:
    """Return the pair; None where it has too few members."""
    names = [member["name"] for member in members]
    if len(names) < 2:
        faults.append(f"The pair has {len(names)} member ({', '.join(names)}): two or more are needed.")
        return None
    vips = read_vips(settings, names, find_existing(members), faults)
    services, planes = _services(settings, vips, members, faults)
    bgp = announcing.read(members, vips, settings, "pair", faults)
    placements = bgp.placements if bgp and not bgp.beside_vrrp else find_placements(members, vips, "pair", faults)
    senders = {} if bgp and not bgp.beside_vrrp else find_senders(members, vips, "pair", faults)
    checked = _checked(settings, vips, placements, members, faults)
    ranks = _priorities(settings, len(names), faults)
    direct_ones = {} if faults else {at: {**services[at], "plane": plane} for at, plane in planes.items()}
    own = {place_of("pair_services", at, service): service for at, service in direct_ones.items()}
    plane = pair_direct.read(settings, own, vips, placements, members, ranks, faults)
    pair = Pair(
        settings,
        vips,
        placements,
        services,
        checked,
        ranks,
        plane,
        pair_peers.read(settings, placements, services, faults),
        senders,
    )
    own_resolver = resolver.of_pair(settings, members, placements, _has_api(settings), faults)
    return planner.Draft(
        vips=vips,
        placements=placements,
        targets=pair.targets(),
        listeners=lambda name: [
            *listeners(services),
            *answers.monitors(pair.answer_port),
            *peers.listening(pair.peers, name),
        ],
        balancer=pair.balancer,
        router=pair.router,
        clients=lambda _name: pair.clients(),
        missing_programs=lambda member, engine: [
            *checked.missing_programs(member, engine),
            *direct.missing_programs(plane, member, engine),
        ],
        watched=pair.watched(),
        weighted=checked.weighted,
        warnings=[
            *presets.without_effect(settings),
            *pair_api.certificate_warnings(presets.names(settings), members),
            *checked.at_once(settings["preempt"] and not bgp),
            *announcing.warnings(bgp, checked.weighted),
            *([] if bgp else pair_direct.warnings(plane, ranks)),
            *links.warnings(vips, placements, senders, checked),
            *follow.warnings(settings, "pair", presets.kind(settings)),
        ],
        checks=lambda name: [each["name"] for each in checked.scripts(name)],
        asked=lambda _name: pair.asked,
        snippet=pair_api.snippet(presets.names(settings), settings, vips),
        follow=_follow(settings, services, vips, members, faults),
        resolver=own_resolver,
        direct=plane,
        bgp=bgp,
        sends=[
            *destinations.of_services(services, "pair_services", loops.known_of(vips, members)),
            *checked.sends(resolver.answered(own_resolver), "pair"),
            *(bgp.sends if bgp else ()),
        ],
        senders=senders,
    )


LAYOUT = planner.Layout("pair", SETTINGS, ["vips"], read_pair, "pair")


def plan(members: List[Member], progress: Progress = unseen) -> Plan:
    """Return the plan of a pair, or the faults of one that fails in some single failure."""
    return planner.plan(LAYOUT, members, progress)


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
    placements: Dict[str, Dict[str, Placement]],
    members: List[Member],
    faults: Faults,
) -> CheckedVips:
    """Return what the members check besides the balancer."""
    found = checks.read_checks(checks.CHECK, settings["checks"], CHECKS, TRACKED, faults)
    checked = CheckedVips(CHECKS, found, vips, placements, in_group=settings["sync"] and len(vips) > 1)
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
