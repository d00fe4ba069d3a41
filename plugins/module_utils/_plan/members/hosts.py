# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks of a layout's members: their variables agree, each can carry its VIPs, no other router conflicts. Pure.

A member is as in `planner`.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Callable, Collection, Dict, Iterable, List, NamedTuple

from ..._agent.config.schema import Faults, shown_of
from ..._agent.vrrp.core.packet import PASSWORD_SIZE
from ..._shared import platforms, vrrp_routers
from ..._shared.engines import AGENT, NATIVE, PROGRAMS, REPLACED, UNITS
from ..model.plan import Vip
from ..model.services import port_conflicts
from ..model.variables import unfit_faults
from . import departed
from .engine_choice import Choice, choose, package_faults, wanted_engines
from .subnets import Placement, find_placement, on_named_interface

Member = Dict[str, Any]
HIGHEST = 254  # 255 is the address owner's


class Existing(NamedTuple):
    """What exists beside the plan: the members' VRIDs now, other VRRP routers on their links, and other pairs."""

    current_vrids: Dict[str, int]  # by the instance's name, and by the address of each of its VIPs
    foreign_routers: List[Dict[str, Any]]
    elsewhere: List[Dict[str, Any]] = []  # the VRIDs of other pairs: ``{vrid, family, by, networks}``
    members: List[Member] = []


def priorities(count: int) -> List[int]:
    """Return the priorities of ``count`` members, best first.

    The first two are close to 256, so that Skew_Time, the wait after a give-up, is some milliseconds. From the
    third on there is a distance, or two would be Active before they hear each other: at version 2 a point is 3.9 ms.
    The last one has at least 128: otherwise no weight brings the first one below it, and a failing check is a FAULT.
    """
    step = max(1, min(25, 125 // max(1, count - 2)))
    return [HIGHEST - rank if rank < 2 else max(1, HIGHEST - 1 - step * (rank - 1)) for rank in range(count)]


def disagreements(members: List[Member], per_member: Collection[str], prefix: str) -> Faults:
    """Refuse a variable that has different values on two members.

    :param per_member: the variables that may differ between members
    """
    faults = []
    for member in members[1:]:
        for key, value in member["settings"].items():
            first = members[0]["settings"].get(key)
            if key not in per_member and value != first:
                shown = (
                    "different values" if key == "auth_pass" else f"{shown_of(key, first)} and {shown_of(key, value)}"
                )
                faults.append(
                    f"{prefix}_{key}: {members[0]['name']} and {member['name']} disagree ({shown}): "
                    "set it once, for the whole group."
                )
                if (prefix, key) == ("pair", "vips"):
                    faults.append("If they are two pairs, name the members of each in its own group (pair_members).")
    return faults


def find_placements(
    members: List[Member], vips: List[Vip], prefix: str, faults: Faults
) -> Dict[str, Dict[str, Placement]]:
    """Return where each member would carry each VIP that it may hold: ``{member: {vip address: Placement}}``."""
    floating = {vip.address for vip in vips}
    # One that does not answer may be the host that answers for a VIP.
    all_are_known = not any(member.get("silent") for member in members)
    macs = {found["mac"] for member in members for found in member["host"]["addresses"]} | departed.macs(members)
    found: Dict[str, Dict[str, Placement]] = {}
    for member in members:
        on_member = found[member["name"]] = {}
        interface = member["settings"].get("interface") or ""
        addresses = _own_addresses(member)
        for vip in vips:
            if member["name"] in vip.order:
                placement, wrong = find_placement(vip.address, addresses, floating, interface, prefix, vip.held_as)
                if placement is None:
                    faults.append(_not_placed(member, vip, wrong))
                else:
                    on_member[vip.address] = placement
            faults.extend(_duplicate_addresses(member, vip, macs) if all_are_known else [])
    return found


def find_senders(
    members: List[Member], vips: List[Vip], prefix: str, faults: Faults
) -> Dict[str, Dict[str, Placement]]:
    """Return from where each member advertises each VIP, as far as the user has named the interface; {} if not."""
    floating, variable = {vip.address for vip in vips}, f"{prefix}_vrrp_interface"
    named = {member["name"]: member["settings"].get("vrrp_interface") or "" for member in members}
    without = ", ".join(name for name, interface in named.items() if not interface)
    if without and any(named.values()):
        faults.append(f"{variable} is empty for {without}, and the others advertise there: set it for each member.")
    found: Dict[str, Dict[str, Placement]] = {}
    for member in members:
        on_member, addresses = found.setdefault(member["name"], {}), _own_addresses(member)
        interface = named[member["name"]]
        for vip in vips if interface else ():
            if member["name"] in vip.order:
                sender, wrong = on_named_interface(vip.address, addresses, floating, interface, variable)
                if sender is None:
                    faults.append(_not_placed(member, vip, wrong))
                else:
                    on_member[vip.address] = sender
    return found if any(found.values()) else {}


def _own_addresses(member: Member) -> List[Dict[str, Any]]:
    """Return what is known of a member's own addresses.

    A VIP that the member's router holds is not the member's own, whatever the length of its prefix is there.
    """
    lives = {address for each in member["host"].get("instances", []) for address in carried(each)}
    return [info for info in member["host"]["addresses"] if info["address"] not in lives]


def _not_placed(member: Member, vip: Vip, wrong: str) -> str:
    """Return why a member cannot carry a VIP."""
    if member.get("silent"):
        return (
            f"{member['name']} does not answer, and its address on the link of VIP {vip.address} is not known: "
            "leave this VIP out until the member answers."
        )
    return f"{member['name']}: {wrong}"


def _duplicate_addresses(member: Member, vip: Vip, macs: Collection[str]) -> Faults:
    return [
        f"VIP {vip.address} is already answered by {mac}, which is none of the members: "
        "choose a free address, or take it away there."
        for mac in member["host"].get("answering", {}).get(vip.address, [])
        if mac not in macs
    ]


def find_existing(members: List[Member]) -> Existing:
    current_vrids: Dict[str, int] = {}
    for member in reversed(members):  # where they disagree, the first member counts
        for instance in member["host"].get("instances", []):
            current_vrids.update(dict.fromkeys([instance["name"], *carried(instance)], instance["vrid"]))
    heard = [router for member in members for router in member["host"].get("heard", [])]
    elsewhere = members[0].get("elsewhere", []) if members else []
    return Existing(current_vrids, vrrp_routers.foreign_routers(heard, _addresses(members)), elsewhere, members)


def carried(instance: Dict[str, Any]) -> List[str]:
    """Return the VIPs of an instance that runs, also those that it does not advertise, in the notation of the plan."""
    return _as_written_in_the_plan([*instance["addresses"], *instance.get("excluded_addresses", [])])


def _as_written_in_the_plan(given: Iterable[str]) -> List[str]:
    found = []
    for text in given:
        try:
            found.append(str(ipaddress.ip_interface(text.partition(" ")[0]).ip))
        except ValueError:  # a name, or a fault that the plan refuses
            continue
    return found


def _addresses(members: List[Member]) -> List[str]:
    """Return the addresses of those whose routers are no strangers: a former member's is stopped before any change.

    A router goes on sending from the address that its host had when it started.
    """
    present = [info["address"] for member in members for info in member["host"]["addresses"]]
    running = [instance["source"] for instance in _instances(members) if instance.get("source")]
    return [*present, *running, *departed.addresses(members)]


def vrrp_conflicts(members: List[Member], vips: List[Vip], where: Dict[str, Dict[str, Placement]]) -> Faults:
    """Return a fault for each VRID or VIP of ours that another VRRP router on a member's link uses."""
    found: Faults = []
    for member in members:
        on_member = where[member["name"]]
        vrids = [
            {"vrid": vip.vrid, "family": vip.version, "interface": on_member[vip.address].interface}
            for vip in vips
            if vip.address in on_member
        ]
        heard = member["host"].get("heard", [])
        addresses = [vip.address for vip in vips]
        found += vrrp_routers.conflicts(heard, _addresses(members), addresses, vrids, known_pass(members))
    return found


def held_vips(members: List[Member], vips: List[Vip]) -> Dict[str, List[str]]:
    """Return which VIPs each member holds now: those of the plan, and those that a router runs and the plan drops."""
    running = [address for each in _instances(members) for address in carried(each)]
    living = dict.fromkeys([*(vip.address for vip in vips), *running])
    own = {member["name"]: {info["address"] for info in member["host"]["addresses"]} for member in members}
    return {name: [vip for vip in living if vip in addresses] for name, addresses in own.items()}


def choose_engines(members: List[Member], prefix: str, faults: Faults) -> Dict[str, Choice]:
    """Return each member's engine and the reason for it; each may have its own setting."""
    found, wanted = {}, wanted_engines(members, prefix, faults)
    for member in members:
        name, host = member["name"], member["host"]
        found[name] = choose(wanted[name], host, prefix)
        faults += [f"{name}: {fault}" for fault in package_faults(wanted[name], found[name], host, prefix)]
    return found


def unfit_files(member: Member, prefix: str, served_elsewhere: Collection[str]) -> Faults:
    """Return which programs, folders and certificates that variables name are not fit for use on a member.

    :param served_elsewhere: the checksums of what other members serve: an expired one of these is said, not refused
    """
    found = [each for each in member["host"].get("unfit", []) if (each.get("expired") or None) not in served_elsewhere]
    return [f"{member['name']}: {fault}" for fault in unfit_faults(found, prefix)]


def served_elsewhere(member: Member, members: List[Member]) -> List[str]:
    """Return the checksums of the files that the haproxy of other members has loaded, and runs with."""
    unit = UNITS[NATIVE].balancer
    hosts = [other["host"] for other in members if other["name"] != member["name"]]
    serving = [host.get("served_files", []) for host in hosts if unit in host.get("active_units", [])]
    return sorted({checksum for each in serving for checksum in each})


def host_faults(member: Member, listeners: List[Dict[str, Any]], choice: Choice) -> Faults:
    """Return what keeps a member from running its engine, and which programs hold a port that its balancer binds."""
    host = member["host"]
    # The agent runs on every distribution with systemd and Python.
    ignored = [platforms.family_problem(host.get("os_family", ""))] if choice.engine == AGENT else []
    faults = [f"{member['name']}: {problem}" for problem in host.get("problems", []) if problem not in ignored]
    own = (*PROGRAMS[choice.engine], *REPLACED[choice.replaces])
    return faults + port_conflicts(listeners, host.get("listeners", []), member["name"], own)


def auth_pass(members: List[Member], new_uuid: Callable[[], str]) -> str:
    """Return the members' VRRP password: the user's, else the one in use, else a new one.

    A pair that is adopted and has no password keeps none: a member with one would not hear the others.

    :param new_uuid: returns a new UUID; VRRP compares its first characters
    """
    known = known_pass(members)
    lives_without = any(each["version"] == 2 for each in _instances_of_the_vips(members))
    # What is no text is refused with the plan.
    return str(known if known or lives_without else new_uuid())[:PASSWORD_SIZE]


def known_pass(members: List[Member]) -> str:
    """Return the user's password, else the one in use, else ''. With several, that of the layout's own VIPs counts."""
    own = members[0]["settings"].get("auth_pass") if members else ""
    in_use = (each["auth_pass"] for each in _instances_of_the_vips(members) or _instances(members))
    return own or next(filter(None, in_use), "")


def _instances(members: List[Member]) -> List[Dict[str, Any]]:
    return [each for member in members for each in (member["host"] or {}).get("instances", [])]


def _instances_of_the_vips(members: List[Member]) -> List[Dict[str, Any]]:
    return [each for each in _instances(members) if _has_a_vip(each, members)]


def _has_a_vip(instance: Dict[str, Any], members: List[Member]) -> bool:
    lists = [members[0]["settings"].get(name) for name in ("vips", "api_vips", "ingress_vips")]
    given = [item for some in lists if isinstance(some, list) for item in some]
    vips = [str(item.get("address") if isinstance(item, dict) else item) for item in given]
    return not set(_as_written_in_the_plan(vips)).isdisjoint(carried(instance))
