# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the VIPs of every layout have in common: how a user writes one, its VRID, and what two must not share. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..._agent.config.schema import Faults, Field, address, integer, read
from ..._shared import vrid, vrrp_routers
from ..dns.names import VIP_ADDRESS, vip_faults
from ..members.hosts import Existing
from ..model.links import networks_of, on_one_link, overlap
from ..model.plan import Vip

BASE_VIP = {
    **VIP_ADDRESS,
    "vrid": Field(integer(1, 255, "a VRID")),
}


def read_vip(
    schema: Mapping[str, Field], given: Any, place: str, faults: Faults
) -> Tuple[Dict[str, Any], Optional[Vip]]:
    """Return the fields of a VIP as written, and the VIP without name, VRID and members; None if it is invalid."""
    # A bare address is the common case.
    fields = read(schema, given if isinstance(given, dict) else {"address": given}, place, faults)
    if fields["address"] is None:
        return fields, None  # which is a fault already
    wrong = vip_faults(fields["address"], place)
    faults.extend(wrong)
    if wrong:
        return fields, None
    bare, _slash, prefix = str(fields["address"]).partition("/")
    return fields, Vip(str(address(bare)[0]), int(prefix) if prefix else None, "")


def of_family(vips: List[Vip], version: int) -> List[Vip]:
    """Return the VIPs of IP version 4 or 6. The two are separate protocols: a VRID may be used once in each."""
    return [vip for vip in vips if vip.version == version]


def rotated(order: List[str], first: int) -> List[str]:
    """Return the members with another one first, so that several VIPs are on several members."""
    at = first % len(order)
    return order[at:] + order[:at]


def free_vrid(vip: Vip, earlier: List[Vip], existing: Existing, faults: Faults, preferred: Optional[int] = None) -> int:
    """Return the VRID in use, or the preferred one, or one that no OpenShift cluster's name gives; 0 with faults.

    A pair that is adopted may have other names for its instances, and two VIPs in one of them: the first VIP keeps it.
    """
    same_family = of_family(earlier, vip.version)
    current = existing.current_vrids.get(vip.address) or existing.current_vrids.get(vip.name)
    same = [other for other in same_family if other.vrid == current]
    if current and all(on_one_link(vip, other, existing.members) is False for other in same):
        return current
    if not all(other.vrid for other in same_family):
        return 0  # the pool is exhausted, as the first fault says
    certain, possible = _taken(vip, same_family, existing)
    choice = vrid.choose(vip.address, "pool", [*certain, *possible], current=preferred, on_conflict="next")
    if choice.faults:
        choice = vrid.choose(vip.address, "pool", certain, current=preferred, on_conflict="next")
    faults.extend(choice.faults)
    return choice.vrids.get("pair", 0)


def again(vip: Vip, place: str) -> str:
    return f"{place} is {vip.address} again: name each VIP once."


def _taken(vip: Vip, earlier: List[Vip], existing: Existing) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
    """Return the VRIDs that others have on the link of a VIP, and those of others that may be on another link.

    The latter are left to them while there are others: each has its own, as far as the pool reaches.
    """
    own = networks_of(vip, existing.members)
    heard = vrrp_routers.taken(router for router in existing.foreign_routers if router["family"] == vip.version)
    known = [(other.vrid, other.address, on_one_link(vip, other, existing.members) is not False) for other in earlier]
    known += [
        (each["vrid"], each["by"], overlap(own, each["networks"]))
        for each in existing.elsewhere
        if each["family"] == vip.version
    ]
    found = [({"vrid": number, "by": by}, is_there) for number, by, is_there in known]
    return [*heard, *(each for each, is_there in found if is_there)], [each for each, there in found if not there]


def clashes(vip: Vip, earlier: List[Vip], place: str, existing: Existing) -> Faults:
    """Say what a VIP has in common with an earlier one. Two that are known to be on two links may share a VRID."""
    if any(other.address == vip.address for other in earlier):
        return [again(vip, place)]
    if any(other.name == vip.name for other in earlier):
        return [f"{place} would be called {vip.name} like another VIP: give it a name of its own."]
    same = [other for other in of_family(earlier, vip.version) if vip.vrid and other.vrid == vip.vrid]
    on_its_link = [(other, on_one_link(vip, other, existing.members)) for other in same]
    unknown = ", and no subnet of the members tells whether they are on two links"
    return [
        f"{place} has VRID {vip.vrid}, which {other.address} has too{'' if known else unknown}: "
        "give one of them another vrid."
        for other, known in on_its_link
        if known is not False
    ]
