# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VIPs of a pair: each with its VRID and the members that may hold it, from what the user wrote. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import (
    Faults,
    Field,
    address,
    integer,
    read,
    text,
    word,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.members import Existing, Vip
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.subnets import vip_faults
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrid as _vrid
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrrp_routers

VIP = {
    "address": Field(text, required=True),
    "vrid": Field(integer(1, 255, "a VRID")),
    "first": Field(word),
}


def read_vips(settings: Dict[str, Any], names: List[str], around: Existing, faults: Faults) -> List[Vip]:
    """Return the VIPs in the user's order.

    :param settings: ``vips`` and ``vrid`` of the role pair
    :param names: the members, first to last
    """
    given = settings["vips"]
    if not isinstance(given, list) or not given:
        faults.append(f"pair_vips is {given!r}: a list of at least one address is wanted.")
        return []
    vips: List[Vip] = []
    for at, item in enumerate(given):
        place = f"pair_vips[{at}]"
        spelled = read(VIP, item if isinstance(item, dict) else {"address": item}, place, faults)
        wrong = vip_faults(spelled["address"], place)
        faults.extend(wrong)
        if not wrong:
            text_address, _slash, prefix = str(spelled["address"]).partition("/")
            vip = Vip(str(address(text_address)[0]), int(prefix) if prefix else None, 0, [])
            if spelled["first"] and spelled["first"] not in names:
                known = ", ".join(names)
                faults.append(f"{place}.first is '{spelled['first']}', no member of the pair: name one of {known}.")
            vrid = spelled["vrid"] or _vrid_of(vip, settings["vrid"], vips, around, faults)
            vips.append(vip._replace(order=_order(vip, spelled["first"], names, vips), vrid=vrid))
            faults.extend(_clashes(vips, place))
    return vips


def _kin(vip: Vip, vips: List[Vip]) -> List[Vip]:
    return [other for other in vips if other.version == vip.version]


def _order(vip: Vip, first: Optional[str], names: List[str], earlier: List[Vip]) -> List[str]:
    """The members take turns as first, so that with two VIPs both earn their keep."""
    at = names.index(first) if first in names else len(_kin(vip, earlier)) % len(names)
    return names[at:] + names[:at]


def _vrid_of(vip: Vip, first: Optional[int], earlier: List[Vip], around: Existing, faults: Faults) -> int:
    """Counted up from the user's VRID; else the one in use; else a free one that no OpenShift cluster's name gives.

    IPv4 and IPv6 are separate protocols: the nth VIP of one family shares its VRID with the nth of the other.
    """
    rank = len(_kin(vip, earlier))
    if first:
        return first + rank
    if vip.name in around.current_vrids:
        return around.current_vrids[vip.name]
    others = [other for other in earlier if other.version != vip.version]
    taken = [{"vrid": other.vrid, "by": other.address} for other in _kin(vip, earlier)]
    taken += vrrp_routers.taken(router for router in around.foreign_routers if router["family"] == vip.version)
    twin = others[rank].vrid if rank < len(others) else None
    choice = _vrid.choose(vip.address, "pool", taken, current=twin, on_conflict="next")
    faults.extend(choice.faults)
    return choice.vrids.get("pair", 0)


def _clashes(vips: List[Vip], place: str) -> Faults:
    """What the last of the VIPs has in common with an earlier one."""
    vip, earlier = vips[-1], vips[:-1]
    if any(other.address == vip.address for other in earlier):
        return [f"{place} is {vip.address} again: name each VIP once."]
    if vip.vrid > _vrid.LAST:
        return [f"{place} would get VRID {vip.vrid}: lower pair_vrid or give it a vrid from 1 to 255."]
    return [
        f"{place} has VRID {vip.vrid}, which {other.address} has too: give each VIP its own."
        for other in _kin(vip, earlier)
        if other.vrid == vip.vrid
    ]
