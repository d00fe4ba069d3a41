# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An IPI-like cluster: its own nodes carry the API VIP and the ingress VIPs. Pure.

Every port, priority and check comes from a preset (`presets`), and variables override each of them.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults, Field, one_of, refused
from ..._agent.vrrp.core.packet import PASSWORD_SIZE
from ..._shared import engines, events
from ..bgp import announcing
from ..forecast.forecast import HANGING, RELOADS, Progress, unseen
from ..layouts import checks, direct, follow, planner, resolver
from ..layouts.checked_vips import CheckedVips
from ..layouts.layout import Draft, Layout
from ..members import loops
from ..members.hosts import Member, priorities
from ..members.openings import Clients
from ..model import answers, destinations, direct_plane, nft_guard, url_checks
from ..model.plan import Balancer, Plan, Redirect, Router, Vip
from . import api as ipi_api
from . import cluster as ipi_cluster
from . import direct as ipi_direct
from . import presets, redirect
from . import services as ipi_services
from .cluster import Cluster
from .presets import Check

DOWN = "haproxy_down"
CHECKS = "ipi_checks"
CHECK = {**checks.CHECK, "vips": Field(one_of("api", "ingress"))}  # of the user's, besides the preset's
ROUTER_PORTS = [80, 443]
# Milliseconds. A server that dies loses its open connections; haproxy passes each new one to another server.
LOST_WITH_A_SERVER = 60


class Ipi(NamedTuple):
    """What each node runs."""

    cluster: Cluster
    services: List[Dict[str, Any]]
    checked: CheckedVips
    direct: Optional[direct.Direct] = None

    def balancer(self, name: str, engine: str) -> Balancer:
        settings, preset = self.cluster.settings, self.cluster.preset
        if name not in self.cluster.balancing:
            return Balancer(timeouts=preset.timeouts, stats_port=preset.ports["stats"])
        own = (
            {"backend_lines": [*ipi_services.HAPROXY_LINES, *preset.haproxy_lines]} if engine == engines.NATIVE else {}
        )
        vips = [vip.address for vip in self.cluster.api.vips]
        plane = self.direct if settings["plane"] == direct_plane.DIRECT else None
        direct_interface = plane.interfaces[name] if plane else ""
        return Balancer(
            services=[{**service, **own} for service in self.services],
            monitors=ipi_services.monitors(self.cluster),
            down_file=self._down_file(name),
            timeouts=preset.timeouts,
            stats_port=preset.ports["stats"],
            start_commands=[redirect.LOAD],
            stop_commands=[redirect.UNLOAD],
            redirect=Redirect(vips, ipi_services.redirected(self.cluster), direct_interface),
            guard=nft_guard.ruleset(settings["machine_networks"]),
        )

    def listeners(self, name: str) -> List[Dict[str, Any]]:
        return [*self.services, *ipi_services.monitors(self.cluster)] if name in self.cluster.balancing else []

    def _down_file(self, name: str) -> str:
        """Return the track file that the balancer's unit writes; empty where nothing tracks it."""
        tracked = self.cluster.preset.events and name in self.cluster.balancing
        return self.cluster.settings["down_file"] if tracked else ""

    def router(self, name: str, engine: str) -> Router:
        down_file = self._down_file(name)
        scripts = [self._script(check) for check in self._own_checks(name) if not self._is_asked(check)]
        asked = self.asked(name)
        return Router(
            instances=[self._instance(name, vip, engine) for vip in self.cluster.carried_by(name)],
            scripts=[*scripts, *answers.scripts(engine, asked), *self.checked.scripts(name)],
            track_files=[
                *([{"name": DOWN, "path": down_file}] if down_file else []),
                *answers.track_files(engine, asked),
                *(self.direct.track_files if self.direct and name in self.direct.interfaces else []),
            ],
        )

    def asked(self, name: str) -> List[answers.Check]:
        return [self._script(check) for check in self._own_checks(name) if self._is_asked(check)]

    def _own_checks(self, name: str) -> List[Check]:
        """Return the layout's own checks of every VIP that a node may carry, each once."""
        carried = self.cluster.carried_by(name)
        return [*{check.name: check for vip in carried for check in self.cluster.checks_of(vip, name)}.values()]

    def _is_asked(self, check: Check) -> bool:
        """Whether it is run all the time, as in `answers`."""
        asks = self.cluster.preset.lowers and not check.weight
        return asks and answers.is_askable(self._script(check)["any_of"])

    def _instance(self, name: str, vip: Vip, engine: str) -> Dict[str, Any]:
        settings, preset, placements = self.cluster.settings, self.cluster.preset, self.cluster.placements
        is_api = vip in self.cluster.api.vips
        version = 3 if vip.version == 6 else settings["vrrp_version"]
        role = "api" if is_api else "ingress"
        tracked = self.checked.tracked(name, vip)
        # The bootstrap host is the last to hold the VIP, whoever comes when.
        preempt = preset.preempt or bool(is_api and self.cluster.bootstrap)
        checks = self.cluster.checks_of(vip, name)
        asked = [self._script(check) for check in checks if self._is_asked(check)]
        lowered = answers.weight([self.priority(other, vip) for other in vip.order], preempt)
        asking = answers.tracked(engine, asked, lowered)
        named = f"{self.cluster.api.cluster}_{role}_vip" if self._names_passwords and version == 2 else ""
        return {
            "name": vip.name,
            "state": "BACKUP",
            "interface": placements[name][vip.address].interface,
            "vrid": vip.vrid,
            "version": version,
            "priority": self.priority(name, vip),
            "advert_interval": settings["advert_interval"],
            "preempt": preempt,
            "preempt_delay": 0,
            "auth_pass": named[:PASSWORD_SIZE],
            "multicast": preset.multicast,
            "source": placements[name][vip.address].address,
            "peers": [placements[other][vip.address].address for other in vip.order if other != name],
            "addresses": [vip.with_prefix],
            "track_scripts": [
                *({"name": check.name, "weight": check.weight} for check in checks if not self._is_asked(check)),
                *asking["track_scripts"],
                *tracked["track_scripts"],
            ],
            "track_files": [
                *([{"name": DOWN, "weight": 0}] if is_api and preset.events else []),
                *asking["track_files"],
                *(self.direct.tracked([vip], self.priority(name, vip)) if self.direct else []),
            ],
            "track_interfaces": tracked["track_interfaces"],
            "notify": None,
        }

    def priority(self, name: str, vip: Vip) -> int:
        """Return a node's priority. Where a preset gives every node the same one, the addresses decide."""
        preset, is_api = self.cluster.preset, vip in self.cluster.api.vips
        base = preset.api_priority if is_api else preset.ingress_priority
        own = preset.bootstrap_priority if name == self.cluster.bootstrap else 0
        return own or base or priorities(len(vip.order))[vip.order.index(name)]

    @property
    def _names_passwords(self) -> bool:
        return self.cluster.preset.named_passwords and not self.cluster.settings["auth_pass"]

    def _script(self, check: Check) -> Dict[str, Any]:
        settings, preset = self.cluster.settings, self.cluster.preset
        values = {
            **preset.ports,
            "api": settings["api_port"],
            "router": settings["router_port"],
            **{f"{name}_path": path for name, path in preset.paths.items()},
        }
        return {
            "name": check.name,
            "any_of": presets.urls_of(check, values),
            "interval": check.interval,
            "timeout": check.timeout or check.interval,
            "rise": check.rise,
            "fall": check.fall,
        }

    def clients(self, name: str) -> Clients:
        """Return who may connect to which port. The machine config server is for networks alone that are known."""
        cluster, networks = self.cluster, self.cluster.settings["machine_networks"]
        api = [cluster.settings["api_port"], cluster.preset.ports["lb"]] if name in cluster.balancing else []
        guarded = [nft_guard.PORT, *([cluster.preset.ports["machine_config"]] if cluster.bootstrap else [])]
        routers = ROUTER_PORTS if any(name in vip.order for vip in cluster.ingress.vips) else []
        machines = dict.fromkeys(guarded, networks) if api and networks else {}
        return {**{port: [] for port in [*api, *routers]}, **machines}

    def targets(self) -> List[List[Any]]:
        api = [[vip.address, port] for vip in self.cluster.api.vips for port in ipi_services.redirected(self.cluster)]
        return api + [[vip.address, port] for vip in self.cluster.ingress.vips for port in ROUTER_PORTS]

    def missing_programs(self, member: Member, engine: str) -> Faults:
        own = self._missing_for_the_agent(member) if engine == engines.AGENT else []
        return own + self.checked.missing_programs(member, engine)

    def _missing_for_the_agent(self, member: Member) -> Faults:
        """Return what the agent needs and cannot install; for HAProxy and keepalived they are packages."""
        name, missing = member["name"], member["host"].get("missing_programs", [])
        found = []
        if name in self.cluster.balancing and "nft" in missing:
            found.append("nft is missing, which passes the API VIP's port on to the balancer: install nftables")
        for script in map(self._script, self._own_checks(name)):
            if "curl" in missing and not url_checks.agent_check(script["any_of"]):
                urls = ", ".join(sum(script["any_of"], []))
                found.append(f"curl is missing, which the check {script['name']} needs to ask {urls}: install curl")
        return [f"{name}: {what}, because with the engine agent nothing is downloaded." for what in found]

    def watched(self) -> Dict[str, Dict[str, Any]]:
        """Return what each failure moves, as `forecast.forecast` takes it."""
        others = [*([direct.DOWN] if self.direct else []), *self.checked.names]
        programs = {
            name: {**spec, "blind_trackers": [*spec.get("blind_trackers", []), *others]}
            for name, spec in self._watched_programs().items()
        }
        trackers = _trackers(self.cluster)
        lost = self.direct.watched(self.cluster.vips, [*trackers, *self.checked.names]) if self.direct else {}
        return {**programs, **lost, **self.checked.watched([*trackers, direct.DOWN])}

    def _watched_programs(self) -> Dict[str, Dict[str, Any]]:
        """Return the VIPs that depend on each program."""
        preset = self.cluster.preset
        api_vips = [vip.name for vip in self.cluster.api.vips]
        checks_of_api = self.cluster.api_checks
        blind_to_haproxy = [check.name for check in checks_of_api if not check.sees_haproxy]
        blind_to_api = [check.name for check in checks_of_api if not check.sees_local_api]
        keeps_vip = len(blind_to_api) == len(checks_of_api)  # when the API server of its holder dies
        draining = ["router_draining"] if presets.fails_on_draining(preset) else []
        api_server = {"instances": api_vips, "fatal": [events.API_FAILING], "harmless": {}}
        return {
            "haproxy": {
                "instances": api_vips,
                "fatal": [events.HAPROXY_KILLED, events.HAPROXY_STOPPED],
                "harmless": {**RELOADS, **({events.API_FAILING: LOST_WITH_A_SERVER} if keeps_vip else {})},
                "blind_trackers": blind_to_haproxy,
            },
            "haproxy hangs": {**HANGING, "instances": api_vips, "blind_trackers": [*blind_to_haproxy, DOWN]},
            **({} if keeps_vip else {"API server": {**api_server, "blind_trackers": [*blind_to_api, DOWN]}}),
            "router": {
                "instances": [vip.name for vip in self.cluster.ingress.vips],
                "fatal": ["router_stopped", *draining],
                "harmless": {},
            },
        }


def read_ipi(members: List[Member], settings: Dict[str, Any], faults: Faults) -> Optional[Draft]:
    """Return the cluster; None where it has too few masters."""
    nodes = [member["name"] for member in members if member["name"] != settings["bootstrap"]]
    masters = [name for name in nodes if name in settings["masters"]]
    if len(masters) < 2:
        few = f"ipi_masters has {len(masters)} members: two or more are needed, three are usual."
        faults += [] if refused(faults, "ipi", "masters") else [few]
        return None
    cluster = ipi_cluster.read_cluster(members, settings, faults)
    checked = _checked(cluster, members, faults)
    services = ipi_services.services(cluster, faults)
    ipi = Ipi(cluster, services, checked)
    priorities = [ipi.priority(name, vip) for vip in cluster.api.vips for name in masters]
    ipi = ipi._replace(direct=ipi_direct.read(cluster, services, members, priorities, faults))
    own_resolver = resolver.of_cluster(settings, members, cluster.placements, faults)
    wrong = nft_guard.faults(settings["machine_networks"], "ipi_machine_networks")
    faults += wrong or nft_guard.outside(
        settings["machine_networks"], _machines(members, cluster), "ipi_machine_networks"
    )
    return Draft(
        vips=cluster.vips,
        placements=cluster.placements,
        targets=ipi.targets(),
        listeners=ipi.listeners,
        balancer=ipi.balancer,
        router=ipi.router,
        clients=ipi.clients,
        missing_programs=ipi.missing_programs,
        watched={} if faults else ipi.watched(),
        weighted=checked.weighted,
        warnings=[
            *ipi_cluster.warnings(cluster, faults),
            *checked.at_once(cluster.preset.preempt and not cluster.bgp),
            *announcing.warnings(cluster.bgp, checked.weighted),
            *([] if cluster.bgp else ipi_direct.warnings(ipi.direct, settings["preset"])),
            *follow.warnings(settings, "ipi", cluster.preset.kind),
        ],
        checks=lambda name: [each["name"] for each in checked.scripts(name)],
        asked=ipi.asked,
        answers=ipi_services.answers(cluster),
        snippet=ipi_api.snippet(cluster),
        follow=_follow(cluster, services, members, faults),
        resolver=own_resolver,
        direct=ipi.direct,
        mends=ipi_cluster.mends(cluster),
        bgp=cluster.bgp,
        sends=_sends(cluster, checked, resolver.answered(own_resolver)),
    )


def _sends(
    cluster: Cluster, checked: CheckedVips, answered: Mapping[str, Sequence[str]]
) -> List[destinations.Destination]:
    """Return which addresses the nodes ask; the balancer's servers are the masters themselves."""
    found = [*checked.sends(answered, "cluster"), *(cluster.bgp.sends if cluster.bgp else ())]
    if cluster.bootstrap_address:
        found.append(destinations.of_bootstrap(cluster.bootstrap_address))
    for vip in cluster.ingress.vips:
        place = f"ipi_ingress_vips ({vip.address}).checks"
        for url in cluster.ingress.checks.get(vip.name, ()):
            asked = destinations.of_url(place, url, answered)
            found += [each._replace(sender=f"{place} {url}", reached=[(vip.address, 0)]) for each in asked]
    return found


def _follow(
    cluster: Cluster, services: List[Dict[str, Any]], members: List[Member], faults: Faults
) -> Optional[follow.Follow]:
    """Return what the masters follow. Each asks the API server on itself first, which needs no VIP."""
    if not services:
        return None  # which is a fault already
    api = [f"https://127.0.0.1:{cluster.settings['api_port']}"]
    vips = [vip.address for vip in cluster.vips]
    names = [service["name"] for service in services]
    kind = cluster.preset.kind
    return follow.read(cluster.settings, "ipi", services, names, api, vips, faults, members=members, kind=kind)


def _checked(cluster: Cluster, members: List[Member], faults: Faults) -> CheckedVips:
    """Return what the nodes check besides the preset's checks."""
    found = checks.read_checks(CHECK, cluster.settings["checks"], CHECKS, _trackers(cluster), faults)
    roles = {vip.name: each.role for each in (cluster.api, cluster.ingress) for vip in each.vips}
    checked = CheckedVips(CHECKS, found, cluster.vips, cluster.placements, roles)
    faults += checked.faults()
    return checked


def _trackers(cluster: Cluster) -> List[str]:
    """Return the names of what the layout itself tracks."""
    every = (check.name for vip in cluster.vips for name in vip.order for check in cluster.checks_of(vip, name))
    return [DOWN, *dict.fromkeys(every)]


def _machines(members: List[Member], cluster: ipi_cluster.Cluster) -> Dict[str, str]:
    """Return by address which node sends from it, as far as its addresses are known."""
    known = loops.own_addresses(members)
    used = [placement.address for on_node in cluster.placements.values() for placement in on_node.values()]
    return {address: known[address] for address in used if address in known}


LAYOUT = Layout("ipi", ipi_cluster.SETTINGS, ["api_vips", "ingress_vips"], read_ipi, "cluster")


def plan(members: List[Member], progress: Progress = unseen) -> Plan:
    """Return the plan of a cluster, or the faults of one that fails in some single failure."""
    return planner.plan(LAYOUT, members, progress)
