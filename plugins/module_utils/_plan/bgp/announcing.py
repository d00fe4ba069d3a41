# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each member of a layout announces by BGP: what FRR, the daemon `anycast` and the firewall are given. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults
from ..._shared import platforms
from ..._shared.engines import ANYCAST, BFD_ECHO_PORT, BFD_MULTIHOP_PORT, BFD_PORT, Daemon
from ..members.hosts import Member
from ..members.subnets import Placement
from ..model.bgp_values import BFD_DEFAULTS, bfd_interval
from ..model.destinations import PEER, Destination
from ..model.plan import Expected, Firewall, MemberPlan, Router, Vip
from . import peers
from .gate import Gate
from .peers import Speaker
from .settings import BGP_PORT, BOTH, VRRP, announces

Watched = Dict[str, Dict[str, Any]]
UNIT = "frr.service"
SLOWEST_SAFE_BFD_MS = 150  # 10 ms x 3 had 9 false downs in 98 s under load, 50 ms x 3 none
NO_ROUTER = Router([], [], [])


class Bgp(NamedTuple):
    """What a layout has read.

    :ivar speakers: by member
    :ivar placements: by member and VIP, the interface towards its router
    """

    prefix: str
    vips: List[Vip]
    speakers: Dict[str, Speaker]
    placements: Dict[str, Dict[str, Placement]]
    warnings: List[str]
    beside_vrrp: bool = False

    def announced(self, name: str, planned: MemberPlan, before: Gate) -> MemberPlan:
        """Return the plan of a member that announces its VIPs.

        :param planned: with a router only beside VRRP
        :param before: what stands before its VIPs
        """
        expected = planned.expected if self.beside_vrrp else self._expected(name, planned.expected)
        questions = planned.questions if self.beside_vrrp else []
        if not before.tracked:
            return planned._replace(questions=questions, expected=expected)
        now = planned.meanwhile
        return planned._replace(
            questions=questions,
            firewall=self._opened(name, planned.firewall),
            meanwhile=now and now._replace(firewall=self._opened(name, now.firewall)),
            expected=expected._replace(
                units=[*expected.units, UNIT, Daemon(ANYCAST).unit],
                sessions=[peer["address"] for peer in self.speakers[name].peers],
                bfd_interval=bfd_interval(self.speakers[name].bfd),
                announced=[vip.address for vip in self.vips if name in vip.order],
            ),
            bgp={"frr": self.frr(name), "anycast": before.file},
        )

    def _expected(self, name: str, expected: Expected) -> Expected:
        """Return what must be so on a member, of its own VIPs: it is not asked for the way to those of others."""
        own = [vip for vip in expected.vips if name in vip.order]
        others = {vip.address for vip in expected.vips} - {vip.address for vip in own}
        targets = [target for target in expected.targets if target[0] not in others]
        return expected._replace(vips=own, targets=targets, peers={}, elects=False)

    def _opened(self, name: str, given: Firewall) -> Firewall:
        """Return what a firewall lets in, the sessions with routers too."""
        used = {placement.interface for placement in self.placements[name].values()}
        interfaces = sorted(used.union(given.interfaces if self.beside_vrrp else ()))
        restricted = [*given.restricted_ports, *sessions(self.speakers[name])]
        return given._replace(interfaces=interfaces, restricted_ports=restricted)

    @property
    def sends(self) -> List[Destination]:
        """The routers, none of which is a member or a VIP of this run's layouts."""
        return [
            Destination(PEER, f"{name}: a peer", peer["address"], "name the router's.", peer["port"])
            for name, speaker in self.speakers.items()
            if any(name in vip.order for vip in self.vips)
            for peer in speaker.peers
        ]

    def sources(self, name: str) -> List[str]:
        """Return the addresses from which a member sends."""
        return sorted({placement.address for placement in self.placements[name].values()})

    def frr(self, name: str) -> Dict[str, Any]:
        speaker = self.speakers[name]
        return {
            "asn": speaker.asn,
            "router_id": speaker.router_id,
            "peers": [*map(_of_role, speaker.peers)],
            "prefixes": [f"{vip.address}/{_host_prefix(vip)}" for vip in self.vips if name in vip.order],
            "bfd": dict(speaker.bfd),
            "communities": list(speaker.communities),
        }


def as_servers(names: Sequence[str], prefix: str) -> Faults:
    """Return a sentence for each member that direct return would make a server, with the VIPs on its lo in any case."""
    return [
        f"{name} is a server of direct return, and has the VIPs on lo for that: BGP would announce them whether its "
        f"balancer serves or not. Use the plane proxy, or {prefix}_reach: {VRRP}."
        for name in names
    ]


def sessions(speaker: Speaker) -> List[Dict[str, Any]]:
    """Return the ports that are open for routers: ``{protocol, port, networks}``.

    FRR takes a peer of its own AS for one that is further away where it shares no network with it.
    """
    found: Dict[Any, List[str]] = {}
    for peer in speaker.peers:
        ports = [("tcp", BGP_PORT)]
        is_internal = peer["asn"] == speaker.asn
        if peer["bfd"] and not peer["multihop"]:
            ports += [("udp", BFD_PORT), ("udp", BFD_ECHO_PORT)]
        if peer["bfd"] and (peer["multihop"] or is_internal):
            ports.append(("udp", BFD_MULTIHOP_PORT))
        for port in ports:
            found.setdefault(port, []).append(peer["address"])
    return [{"protocol": kind, "port": port, "networks": found[kind, port]} for kind, port in sorted(found)]


def _of_role(peer: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what the role needs of a peer: not what it says to the plan alone, and no key that says nothing."""
    return {key: value for key, value in peer.items() if key != "route_reflector" and value not in (None, "")}


def _host_prefix(vip: Vip) -> int:
    return 128 if vip.version == 6 else 32


def read(
    members: Sequence[Member], vips: Sequence[Vip], settings: Mapping[str, Any], prefix: str, faults: Faults
) -> Optional[Bgp]:
    """Return what is announced; None where VRRP alone carries the VIPs."""
    if not announces(settings):
        return None
    wrong: Faults = [fault for vip in vips for fault in _of_vip(vip)]
    carried = {each["name"]: [vip for vip in vips if each["name"] in vip.order] for each in members}
    speakers = {
        each["name"]: peers.read_speaker(each, vips, prefix, wrong if carried[each["name"]] else []) for each in members
    }
    wrong += [] if wrong else peers.faults(members, vips, speakers, prefix)
    wrong += [fault for each in members if carried[each["name"]] for fault in _without_packages(each, prefix)]
    placements = peers.placements(members, vips, speakers, wrong)
    faults += wrong
    beside = settings["reach"] == BOTH
    near = [] if beside else peers.in_subnets(members, vips)
    return Bgp(prefix, [*vips], speakers, placements, [*near, *_fast_bfd(speakers, prefix)], beside)


def _of_vip(vip: Vip) -> Faults:
    if ipaddress.ip_address(vip.address).is_link_local:
        return [f"VIP {vip.address} is link-local, and no router passes it on: choose another address."]
    if vip.prefix is None or vip.prefix == _host_prefix(vip):
        return []
    return [f"VIP {vip.with_prefix} has a prefix length, and BGP announces the address alone: write {vip.address}."]


def _without_packages(member: Member, prefix: str) -> Faults:
    """Refuse a host that cannot get FRR, as far as it was read, and one whose packages nobody knows."""
    host = member["host"]
    family, mend = host.get("os_family"), f"use {prefix}_reach {VRRP}"
    if UNIT in host.get("existing_units", []):
        return []
    if family and family not in platforms.FAMILIES:
        return [f"{member['name']} is {family}, whose FRR packages the roles do not know: {mend}."]
    if host.get("unobtainable"):
        return [f"{member['name']} cannot get FRR, because {host['unobtainable']}: mend that, or {mend}."]
    return []


def _fast_bfd(speakers: Mapping[str, Speaker], prefix: str) -> List[str]:
    fast = [
        name
        for name, speaker in speakers.items()
        if any(peer["bfd"] for peer in speaker.peers)
        and speaker.bfd["interval"] * speaker.bfd["multiplier"] < SLOWEST_SAFE_BFD_MS
    ]
    return [
        f"{', '.join(fast)}: {prefix}_bgp.bfd ends a session after less than {SLOWEST_SAFE_BFD_MS} ms, and a host that "
        f"is only busy may lose its path: {BFD_DEFAULTS['interval']} ms x {BFD_DEFAULTS['multiplier']} never did in "
        "our trials."
    ][: len(fast)]


def watched(by_name: Watched, weighted: Sequence[str]) -> Watched:
    """Return what each failure moves, as `forecast.forecast` takes it: a check with a weight moves nothing here.

    :param weighted: the names of the checks with a weight
    """
    moved = {name: {"fatal": [], "harmless": dict.fromkeys(by_name[name]["fatal"], 0)} for name in weighted}
    return {name: {**spec, **moved.get(name, {})} for name, spec in by_name.items()}


def warnings(found: Optional[Bgp], weighted: Sequence[str]) -> List[str]:
    """Return what the user should know of VIPs that are announced.

    :param weighted: the names of the checks with a weight
    """
    if found is None:
        return []
    uncounted = [
        f"The check {name} has a weight, and BGP has no priorities: while it fails, the VIPs stay announced. Without a "
        "weight it withdraws them."
        for name in weighted
    ]
    return [*found.warnings, *uncounted]
