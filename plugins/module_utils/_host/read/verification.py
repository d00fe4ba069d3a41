# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares what one member sees of itself and of the link with the plan. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Sequence

from ..._agent.metrics.sessions import ESTABLISHED
from ..._shared.engines import NATIVE, PROGRAMS, UNITS, is_own

UNKNOWN = "not known to FRR"


def faults(plan: Dict[str, Any], observed: Dict[str, Any]) -> List[str]:
    """Return a sentence for each thing that is not as planned, as one member sees it.

    :param plan: as ``Expected`` of the plan has it
    :param observed: ``{addresses, answering, active_units, listeners, stale}`` as `host_info` returns them;
        ``reached``, the targets that accepted a connection; ``in_fault``, the VRRP instances in FAULT and why;
        ``down_file``, what the balancer's track file says; ``sessions`` of BGP, the state of each by its peer, and
        ``sent``, how many VIPs it was told of; ``bfd_intervals``, how often it takes BFD's packets; ``on_loopback``,
        the addresses of lo
    """
    found = _unannounced(plan, observed)
    for vip in plan["vips"] if plan.get("elects", True) else []:
        count = holders(vip["address"], observed)
        if count != 1:
            far = "" if count else _in_another_subnet(plan.get("peers", {}).get(vip["address"], ()), observed)
            found.append(f"VIP {vip['address']} has {count} holders as seen from here, exactly one is right{far}.")
    for unit in units(plan):
        if unit not in observed["active_units"]:
            found.append(f"{unit} is not active, so this member cannot take over.")
    found += observed["stale"]
    if observed["down_file"] not in ("", "0"):
        found.append(f"{plan['down_file']} says {observed['down_file']}, that the balancer is down, although it runs.")
    for instance, why in observed["in_fault"].items():
        if instance in plan.get("excused", ()):
            continue
        found.append(f"{instance} is in FAULT, so this member cannot take over{': ' + why if why else ''}.")
    programs = plan.get("programs", PROGRAMS[NATIVE])
    served = {item["port"] for item in observed["listeners"] if is_own(item, programs)}
    for service in plan["services"]:
        if service["port"] not in served:
            found.append(f"{programs[0]} does not listen on port {service['port']} for service {service['name']}.")
    vips = [vip["address"] for vip in plan["vips"]]
    own = {info["address"] for info in observed["addresses"]}
    from_outside = {service["port"] for service in plan["services"] if service.get("from_outside")}
    for address, port in plan["targets"]:
        if address in own and port in from_outside:
            continue
        if f"{address} {port}" not in observed["reached"]:
            through = "through the VIP " if address in vips else ""
            found.append(f"nothing answers {through}at {address} port {port}.")
    return found


def _unannounced(plan: Dict[str, Any], observed: Dict[str, Any]) -> List[str]:
    """Return what is in the way of VIPs that each member announces by BGP from its lo."""
    missing = [vip for vip in plan.get("announced", []) if vip not in observed["on_loopback"]]
    found = [f"VIP {vip} is not on lo, so this member does not announce it." for vip in missing]
    if plan.get("every_path"):
        return [*found, *_without_path(plan, observed)]
    if plan.get("sessions") and ESTABLISHED not in observed["sessions"].values():
        states = "; ".join(f"{peer} {observed['sessions'].get(peer, UNKNOWN)}" for peer in plan["sessions"])
        found.append(f"no session of BGP is established ({states}), so no router sends anything to this member.")
    return found


def _without_path(plan: Dict[str, Any], observed: Dict[str, Any]) -> List[str]:
    """Return the routers that would not know the way to a VIP once VRRP ends, as far as this member can tell."""
    found = [
        f"{sentence[:-1]}, so it would not know the way to the VIPs." for sentence in without_session(plan, observed)
    ]
    for peer, state in observed["sessions"].items():
        own = [vip for vip in plan["announced"] if (":" in vip) == (":" in peer)]
        sent = observed["sent"].get(peer, 0)
        if peer in plan["sessions"] and state == ESTABLISHED and sent < len(own):
            found.append(f"{peer} was told of {sent} VIPs, and {len(own)} are on lo.")
    return found


def without_session(plan: Dict[str, Any], observed: Dict[str, Any]) -> List[str]:
    """Return a sentence for each router without a session: the others send all to this member, and that is no fault."""
    states = {peer: observed["sessions"].get(peer, UNKNOWN) for peer in plan.get("sessions", [])}
    return [f"no session with {peer} ({state})." for peer, state in states.items() if state != ESTABLISHED]


def without_peer(plan: Dict[str, Any], reached: Sequence[str]) -> List[str]:
    """Return a sentence for each haproxy that is to share stick tables with this one, and cannot.

    :param reached: the ``peered`` of the plan that accept a connection
    """
    return [
        f"the peer at {address} port {port} does not answer, so that the two haproxys share no stick tables: see "
        "whether that member runs, and open this port between the members."
        for address, port in plan.get("peered", [])
        if f"{address} {port}" not in reached
    ]


def slow_to_notice(plan: Dict[str, Any], observed: Dict[str, Any]) -> List[str]:
    """Return a sentence for each router that notices a silent member later than the forecast has it."""
    return [
        f"{peer} accepts a BFD packet every {interval} ms at most, and the forecast reckons with "
        f"{plan['bfd_interval']}: set router_interval of bfd to {interval} in the inventory."
        for peer, interval in observed["bfd_intervals"].items()
        if peer in plan.get("sessions", []) and interval > plan["bfd_interval"]
    ]


def _in_another_subnet(peers: Sequence[str], observed: Dict[str, Any]) -> str:
    """Return that this host is on another link than those that may hold a VIP; '' where it is not, or may not be."""
    own = [info for info in observed["addresses"] if info["interface"] != "lo"]
    networks = {ipaddress.ip_interface(f"{info['address']}/{info['prefix']}").network for info in own}
    known = [network for network in networks if network.num_addresses > 1 and not network.is_link_local]
    if not known or not peers or any(ipaddress.ip_address(peer) in network for peer in peers for network in known):
        return ""
    where = ", ".join(sorted(map(str, known)))
    return f": none of {', '.join(peers)}, which may hold it, is in a subnet of this host ({where})"


def units(plan: Dict[str, Any]) -> List[str]:
    """Return the units that must run on this member."""
    return list(plan.get("units", UNITS[NATIVE]))


def holders(vip: str, observed: Dict[str, Any]) -> int:
    """Return how many hosts hold the VIP: this one, and every other that answers for it."""
    own = any(info["address"] == vip for info in observed["addresses"])
    return int(own) + len(observed["answering"].get(vip, []))
