# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What all nodes of an IPI-like cluster share: the settings, the preset, and the nodes of each VIP. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..._agent.config.schema import (
    Faults,
    Field,
    anything,
    boolean,
    integer,
    list_of,
    number,
    one_of,
    port,
    read,
    repeated,
    shown,
    text,
    word,
)
from ..._shared import engines, vrid
from ..bgp import announcing
from ..bgp import settings as reach
from ..change import delivery
from ..dns.names import bootstrap_address, cluster_name
from ..layouts import follow, resolver
from ..layouts.pasting import PLATFORMS
from ..members.hosts import Member, find_existing, find_placements
from ..members.subnets import Placement
from ..model import agent_checks, direct_plane, nft_guard, values
from ..model.plan import Vip
from ..model.services import CHECK, changed_check
from . import presets
from .presets import FORMER_NAMES, PRESETS, Check, Preset
from .vips import RoleVips

SETTINGS = {
    "masters": Field(list_of(text), []),
    "cluster_name": Field(anything, ""),
    "other_clusters": Field(list_of(text), []),
    "preset": Field(one_of(*PRESETS, *FORMER_NAMES), "default"),
    "platform": Field(one_of(*PLATFORMS), "baremetal"),
    "api_vips": Field(anything, []),
    "ingress_vips": Field(anything, []),
    "ingress_members": Field(list_of(word), []),
    "interface": Field(values.optional(values.interface), ""),
    "engine": Field(anything, engines.AUTO),  # read for each member
    "auth_pass": Field(text, "", secret=True),
    "vrrp_version": Field(integer(2, 3, "a VRRP version"), 2),
    "advert_interval": Field(number(0.01, 255, " seconds"), 1),
    "multicast": Field(boolean),
    "api_port": Field(port, 6443),
    "lb_port": Field(port),
    "machine_config_port": Field(port),
    "ready_port": Field(port),
    "monitor_port": Field(port),
    "stats_port": Field(port),
    "router_port": Field(port, 1936),
    "server_check": Field(anything, {}),
    "bootstrap": Field(anything, ""),  # an address, or a member's name
    "bootstrap_complete": Field(boolean, False),
    "take_over": Field(boolean, False),
    "plane": Field(one_of(*direct_plane.PLANES), direct_plane.PROXY),
    "machine_networks": Field(list_of(text), []),
    "down_file": Field(values.optional(values.down_file), "/run/haproxy.down"),
    "checks": Field(anything, []),
    "metrics_file": Field(values.optional(values.metrics_file), ""),
    **reach.SETTINGS,
    **delivery.SETTINGS,
    **follow.SETTINGS,
    **resolver.SETTINGS,
}


class Cluster(NamedTuple):
    """What all nodes share."""

    settings: Dict[str, Any]
    masters: List[str]
    preset: Preset
    api: RoleVips
    ingress: RoleVips
    placements: Dict[str, Dict[str, Placement]]
    # Until the bootstrap is complete:
    bootstrap: str = ""  # the member that is the bootstrap host
    bootstrap_address: str = ""  # of a bootstrap host that is no member
    bgp: Optional[announcing.Bgp] = None

    @property
    def balancing(self) -> List[str]:
        """The nodes with a balancer, which are those that may carry the API VIP."""
        return [*self.masters, *([self.bootstrap] if self.bootstrap else [])]

    @property
    def api_checks(self) -> List[Check]:
        """The checks of the API VIP, on whichever node."""
        return [*self.preset.api_checks, *(self.preset.bootstrap_checks if self.bootstrap else ())]

    @property
    def vips(self) -> List[Vip]:
        return [*self.api.vips, *self.ingress.vips]

    def carried_by(self, name: str) -> List[Vip]:
        return [vip for vip in self.vips if name in vip.order]

    def checks_of(self, vip: Vip, name: str) -> List[Check]:
        """Return a shard's own checks, or the preset's: a VIP follows its own routers only.

        :param name: the node
        """
        if vip in self.api.vips:
            of_bootstrap = self.preset.bootstrap_checks if name == self.bootstrap else ()
            return list(of_bootstrap or self.preset.api_checks)
        own = self.ingress.checks.get(vip.name)
        if own is None:
            return list(self.preset.ingress_checks)
        usual = self.preset.ingress_checks[0]
        return [
            usual._replace(name=f"chk_{vip.name}_{at + 1}".lower(), any_of=((url,),), weight=0)
            for at, url in enumerate(own)
        ]


def read_cluster(members: List[Member], settings: Dict[str, Any], faults: Faults) -> Cluster:
    """Return the cluster; adds faults of the VIPs and of the cluster's name."""
    names, cluster = [member["name"] for member in members], settings["cluster_name"]
    masters = [name for name in names if name in settings["masters"] and name != settings["bootstrap"]]
    bootstrap, bootstrap_address = _bootstrap(names, settings, faults)
    wrong: Faults = []
    cluster_name(cluster, wrong)
    vrids = vrid.choose(cluster, "openshift", [])
    faults += wrong or ([] if reach.is_bgp(settings) else vrids.faults)
    faults += _ingress_members_faults(settings["ingress_members"])
    unknown = [name for name in settings["ingress_members"] if name not in names]
    faults += [f"ipi_ingress_members names {name}, which is not a node of this cluster." for name in unknown]
    workers = [name for name in names if name not in settings["masters"]]
    existing = find_existing(members)
    announced = reach.is_bgp(settings)
    holders = [*masters, *([bootstrap] if bootstrap else [])]
    api = RoleVips("api", str(cluster), holders, vrids.vrids.get("api"), announced)
    carriers = settings["ingress_members"] or [*workers, *masters]
    ingress = RoleVips("ingress", str(cluster), carriers, vrids.vrids.get("ingress"), announced)
    faults += api.read(settings["api_vips"], existing, [])
    faults += ingress.read(settings["ingress_vips"], existing, api.vips)
    faults += _vrids_of_others(settings, api, ingress)
    vips = [*api.vips, *ingress.vips]
    bgp = announcing.read(members, vips, settings, "ipi", faults)
    placements = bgp.placements if bgp and not bgp.beside_vrrp else find_placements(members, vips, "ipi", faults)
    preset = _preset(settings, faults)
    faults += _not_announced(settings, preset) if bgp else []
    return Cluster(settings, masters, preset, api, ingress, placements, bootstrap, bootstrap_address, bgp)


def _not_announced(settings: Dict[str, Any], preset: Preset) -> Faults:
    """Refuse what has no way without VRRP yet."""
    found = []
    if not preset.lowers:
        found.append(
            f"ipi_preset is {settings['preset']!r}, whose checks elect a holder by weights, and BGP has no election: "
            f"set ipi_preset to default, or use ipi_reach {reach.VRRP}."
        )
    if settings["delivery"] == engines.POD:
        found.append(
            "ipi_delivery is pod, and a run cannot ask FRR in a pod yet: use unit, have onprem.lb.pods write the pods "
            f"to a folder without ipi_delivery, or use ipi_reach {reach.VRRP}."
        )
    return found


def _bootstrap(names: List[str], settings: Dict[str, Any], faults: Faults) -> Tuple[str, str]:
    """Return the member that is the bootstrap host, and the address of one that is none; '' for what there is not."""
    given = settings["bootstrap"]
    if not given or settings["bootstrap_complete"]:
        return "", ""
    if given in names and given in settings["masters"]:
        return given, ""
    return "", bootstrap_address(given, faults)


def _vrids_of_others(settings: Dict[str, Any], *roles: RoleVips) -> Faults:
    """Refuse a VRID that another cluster on the link has, by its name."""
    found: Faults = []
    for other in settings["other_clusters"]:
        if other == settings["cluster_name"]:
            continue
        try:
            theirs = vrid.openshift(other)
        except ValueError as error:
            found.append(f"ipi_other_clusters: {error}")
            continue
        found += [
            f"VIP {vip.address} has VRID {vip.vrid}, which {vrid.ROLES[role].format(other)} has too: "
            f"give the VIP another vrid in ipi_{ours.role}_vips."
            for ours in roles
            for vip in ours.vips
            for role, number in theirs.items()
            if vip.vrid == number
        ]
    return found


def _ingress_members_faults(given: List[str]) -> Faults:
    found = [f"ipi_ingress_members names {name} twice: name each node once." for name in repeated(given)]
    if len(set(given)) == 1:
        found.append(f"ipi_ingress_members has {given[0]} alone: name a second node, which can take the VIP over.")
    return found


def _preset(settings: Dict[str, Any], faults: Faults) -> Preset:
    """Return the preset, with the user's changes."""
    preset = PRESETS[presets.current_name(settings["preset"])[0]]
    ports = {name: settings[f"{name}_port"] or usual for name, usual in preset.ports.items()}
    own = settings["server_check"]
    if not isinstance(own, dict):
        faults.append(f"ipi_server_check is {shown(own)}: a mapping with interval, fall or rise is required.")
        own = {}
    checked = read(CHECK, own, "ipi_server_check", faults)
    checked["agent"] = agent_checks.completed(checked["agent"], "ipi_server_check.agent", faults)
    if checked["type"] == "none":
        faults.append("ipi_server_check.type is 'none': a dead API server would still get requests, use https or tcp.")
    own = {key: value for key, value in checked.items() if None not in (own.get(key), value)}
    former = preset.former_pace if any(key in own for key in preset.former_pace) else {}
    usual = {**preset.server_check, **former}
    multicast = preset.multicast if settings["multicast"] is None else settings["multicast"]
    faults += presets.port_faults({"api": settings["api_port"], **ports, "router": settings["router_port"]})
    return preset._replace(ports=ports, multicast=multicast, server_check=changed_check(usual, own))


def mends(cluster: Cluster) -> Dict[str, str]:
    """Return what to do about members in another subnet, by VIP: masters have to carry the API's, workers none."""
    ingress = "leave out {others}: name the other nodes in ipi_ingress_members, or in the VIP's own members"
    return {
        **{vip.address: "give {others} an address there, or correct ipi_interface" for vip in cluster.api.vips},
        **{vip.address: ingress for vip in cluster.ingress.vips},
    }


def warnings(cluster: Cluster, faults: Faults) -> List[str]:
    """Return warnings about the preset. A check that is too fast is a fault, except in ``ocp45``."""
    preset, renamed = presets.current_name(cluster.settings["preset"])
    races = _failover_races(cluster.preset)
    if preset != "ocp45":  # which reproduces that release
        faults += races
        races = []
    return renamed + _shut_out(cluster) + presets.port_warnings(cluster.preset.ports) + races


def _shut_out(cluster: Cluster) -> List[str]:
    """Say that a firewall stays closed for the machine config server, where the preset says that there is one."""
    asked = {url for check in cluster.preset.api_checks for urls in check.any_of for url in urls}
    if presets.MACHINE_CONFIG not in asked or cluster.settings["machine_networks"]:
        return []
    return [
        "ipi_machine_networks is empty, so that an active firewall lets nobody fetch a machine's configuration from "
        f"port {nft_guard.PORT}: name the networks of the cluster's machines."
    ]


def _failover_races(preset: Preset) -> List[str]:
    """The VIP must not move before haproxy has detected the same failure: the next member still uses that server."""
    noticed = presets.detection_time(preset)
    return [
        f"{check.name} sees a dead API server after {check.interval * check.fall:g} s and haproxy after {noticed:g} s, "
        "so the VIP would move to a member that still sends requests there: shorten ipi_server_check."
        for check in preset.api_checks
        if check.sees_local_api and check.interval * check.fall <= noticed
    ]
