# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of a member that does not answer. Pure.

The last run has left a record of the members' addresses on all of them. What else the member runs is taken to be what
its peers run, which the same run has set up. It may still hold VIPs: that ssh is silent says nothing of VRRP.

While a cluster bootstraps, its masters may not exist yet. Their addresses are those of the inventory then.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Tuple

from ..._agent.config.schema import Faults, address, boolean
from ..._shared.engines import NATIVE

Member = Dict[str, Any]


def faults(members: List[Member]) -> Faults:
    """Return why a run cannot go on without the members that do not answer.

    :param members: as in `planner`
    """
    return [
        f"{member['name']} does not answer, and no other member has a record of it from an earlier run, so its address "
        "is not known: repeat the run when it answers, or take it out of the inventory."
        for member in members
        if member.get("silent") and not _addresses(member, members)
    ]


def complete(members: List[Member]) -> List[Member]:
    """Return the members, those that do not answer with what the others know of them."""
    return [{**each, "host": _host(each, members)} if each.get("silent") else each for each in members]


def sentences(members: List[Member]) -> List[str]:
    """Return what a run says of members that do not answer."""
    return [
        f"{member['name']} does not answer: this run leaves it as it is, and does not verify it. Its address is that "
        f"of {_known_from(member['name'], members)}, its settings are assumed to be its peers'."
        for member in members
        if member.get("silent")
    ]


def _living(members: List[Member]) -> List[Member]:
    return [each for each in members if not each.get("silent") and each["host"]]


def _known_from(name: str, members: List[Member]) -> str:
    having = [each["name"] for each in _living(members) if (each["host"].get("members") or {}).get(name)]
    return f"the last run's record on {having[0]}" if having else "the inventory, as the cluster bootstraps"


def _addresses(member: Member, members: List[Member]) -> List[str]:
    """Return the addresses of a member that does not answer, as far as they are known."""
    recorded, settings = _recorded(member["name"], members), member["settings"]
    is_over = bool(boolean(settings.get("bootstrap_complete", False))[0])
    if recorded or is_over or settings.get("bootstrap") not in [each["name"] for each in members]:
        return recorded
    return [found for found, wrong in [address(member["address"])] if not wrong]


def _recorded(name: str, members: List[Member]) -> List[str]:
    """Return the addresses of a member in the record that another has: where to connect to, then what it sends from."""
    records = (each["host"].get("members") or {} for each in _living(members))
    return next((record[name] for record in records if record.get(name)), [])


def _host(member: Member, members: List[Member]) -> Dict[str, Any]:
    own = _addresses(member, members)
    known = [(each, info) for each in _living(members) for info in each["host"]["addresses"]]
    found = [
        {**info, **_named(member, other, info["interface"]), "address": source, "mac": "", "assumed": True}
        for source in dict.fromkeys(own)
        for other, info in _on_its_link(source, known)
    ]
    engines = [each["host"].get("pods_engine") for each in _living(members)]
    return {
        "addresses": found,
        "assumed": True,
        "silent": True,
        "instances": _instances(own, members),
        "pods_engine": next(filter(None, engines), NATIVE),
    }


def _named(member: Member, other: Member, interface: str) -> Dict[str, str]:
    """Return the interface that a member has in the place of another one's, where its variables name it."""
    is_of_vrrp = interface and interface == other["settings"].get("vrrp_interface")
    name = member["settings"].get("vrrp_interface" if is_of_vrrp else "interface")
    return {"interface": name} if name else {}


def _on_its_link(address: str, known: List[Tuple[Member, Dict[str, Any]]]) -> List[Tuple[Member, Dict[str, Any]]]:
    """Return an address of the others that is on the link of this one, as its interface and prefix length would be."""
    for other, info in known:
        network = ipaddress.ip_interface(f"{info['address']}/{info['prefix']}").network
        try:
            if ipaddress.ip_address(address) in network and network.num_addresses > 1:
                return [(other, info)]
        except ValueError:  # a name
            return []
    return []


def _instances(own: List[str], members: List[Member]) -> List[Dict[str, Any]]:
    """Return the instances of its peers as it has them: with the peer in its own place, and one priority lower."""
    found: Dict[str, Dict[str, Any]] = {}
    for each in _living(members):
        sources = [info["address"] for info in each["host"]["addresses"]]
        for instance in each["host"].get("instances", []):
            peers = instance["peers"]
            if instance["multicast"] or set(own) & set(peers):
                others = [*(peer for peer in peers if peer not in own), *_recorded(each["name"], members)]
                seen = [peer for peer in others if peer in sources or peer in peers] if peers else []
                source = next((peer for peer in peers if peer in own), "")
                mirrored = {"peers": sorted(set(seen)), "source": source, "priority": max(1, instance["priority"] - 1)}
                found.setdefault(instance["name"], {**instance, **mirrored})
    return list(found.values())
