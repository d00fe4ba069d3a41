# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plans a cluster whose hosts are not read, because its pods are delivered by something else than Ansible. Pure.

What a run otherwise reads of the hosts has to be in the inventory: the interface of the VIPs, the addresses of each
node, and the password. Nothing of them is made up.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults, boolean
from ..._shared.pods import NAMES, manifest_of
from ..bgp import settings as reach
from ..ipi import layout as ipi
from ..layouts import several
from ..layouts.several import Plans
from ..members.hosts import Member
from ..members.subnets import placeholder_host
from ..model.kubeconfig import Credentials
from ..model.plan import MemberPlan
from . import files
from .files import Made, Render
from .manifests import Options

Draw = Callable[..., Any]  # `planner.plan` or `planner.draft`
EVERY_MANIFEST = tuple(map(manifest_of, NAMES))


class Pods(NamedTuple):
    """The files of each member, by its name. With faults there are none."""

    faults: Faults
    lines: List[str] = []
    members: Dict[str, Made] = {}


def draw(
    given: Sequence[Member],
    addresses: Mapping[str, Sequence[str]],
    options: Options,
    render: Render,
    one: Draw,
    credentials: Optional[Credentials] = None,
) -> Pods:
    """Return the pods of a cluster, or why it cannot have them.

    :param given: members as in `planner`, which were not read
    :param addresses: those of each member, by its name
    :param credentials: of those that follow their cluster
    """
    members = [{**member, "host": _host(member, addresses[member["name"]])} for member in given]
    faults = [fault for member in members for fault in _faults(member, addresses[member["name"]])]
    plans = several.draw(ipi.LAYOUT, members, one)
    if faults or plans.faults:
        return Pods(list(dict.fromkeys([*faults, *plans.faults])))
    return _made(members, plans, options, render, credentials)


def _made(
    members: List[Member], plans: Plans, options: Options, render: Render, credentials: Optional[Credentials]
) -> Pods:
    password = str(members[0]["settings"].get("auth_pass") or "")
    planned = {name: plan for each in plans.plans for name, plan in each.members.items()}
    faults = [fault for name, plan in planned.items() for fault in _without_password(name, plan, password)]
    made = {name: files.of_member(name, plan, password, options, render, credentials) for name, plan in planned.items()}
    if credentials is None and any(plan.follow for plan in planned.values()):
        faults.append("pods_kubeconfig is missing, and ipi_follow is set: name a copy of the nodes' kubeconfig.")
    faults += [fault for each in made.values() for fault in each.faults]
    of_engines = {line for each in plans.plans for line in each.engines}  # they speak of packages
    lines = [line for line in plans.lines if line not in of_engines]
    return Pods(faults) if faults else Pods([], lines, made)


def _host(member: Member, addresses: Sequence[str]) -> Dict[str, Any]:
    """Return what is known of a host: its addresses of the families of the VIPs, on the interface of the VIPs."""
    interface, vips = member["settings"].get("interface") or "", _vips(member)
    own = {version: address for address in addresses for version in [_version(address)] if version}
    found = [
        each
        for version, address in own.items()
        for vip in vips
        if _version(_address(vip)) == version
        for each in placeholder_host([vip], address, 0, interface)["addresses"]
    ]
    return {"addresses": found, "assumed": True}


def _vips(member: Member) -> List[Any]:
    lists = [member["settings"].get(name) for name in ipi.LAYOUT.vips]
    return [vip for some in lists if isinstance(some, list) for vip in some]


def _address(vip: Any) -> str:
    return str(vip.get("address") if isinstance(vip, dict) else vip).partition("/")[0]


def _version(address: str) -> Optional[int]:
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return None


def _faults(member: Member, addresses: Sequence[str]) -> Faults:
    """Return what is missing of a member, and what its pods cannot do."""
    name, settings = member["name"], member["settings"]
    found = []
    if settings.get("reach") == reach.BOTH:
        found.append(
            f"{name}: ipi_reach is {reach.BOTH}, for which nodes must not answer ARP for lo, and a pod on the network "
            f"of its host may not set that: use {reach.BGP}, or {reach.VRRP}."
        )
    if not settings.get("interface") and settings.get("reach") != reach.BGP:
        found.append(f"{name}: ipi_interface is empty, and the host is not read: name the interface of the VIPs.")
    known = {_version(address) for address in addresses}
    wanted = {_version(_address(vip)) for vip in _vips(member)} - {None}
    found += [
        f"{name} has no IPv{version} address in pods_address ({', '.join(addresses)}), and there are IPv{version} "
        "VIPs: add the one from which it is to advertise."
        for version in sorted(wanted - known, key=str)
    ]
    if settings.get("metrics_file"):
        found.append(
            f"{name}: ipi_metrics_file is set, and the program that writes it is not available as a pod "
            "yet: leave it out."
        )
    if boolean(settings.get("dns", False))[0]:
        found.append(
            f"{name}: ipi_dns is set, and the resolver is not a pod: leave it out here, and set it up on the nodes "
            "with "
            "the role onprem.lb.resolver."
        )
    return found


def _without_password(name: str, plan: MemberPlan, password: str) -> Faults:
    """Refuse a password that nobody has chosen: each rendering would make another, and members would not agree."""
    bare = [each for each in plan.router.instances if each["version"] == 2 and not each["auth_pass"]]
    if password or not bare:
        return []
    return [f"{name}: ipi_auth_pass is empty, and no host is read that could keep one: choose at most 8 characters."]
