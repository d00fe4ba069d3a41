# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VIPs of a pair: each with its VRID and the members that may hold it, from what the user wrote. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set

from ..._agent.config.schema import Faults, Field, no_addresses, shown, word
from ..._shared.vrid import LAST
from ..bgp.settings import is_bgp
from ..layouts.vips import BASE_VIP, again, clashes, free_vrid, of_family, read_vip, rotated
from ..members.hosts import Existing
from ..model.plan import Vip

VIP = {**BASE_VIP, "first": Field(word)}


def read_vips(settings: Dict[str, Any], names: List[str], existing: Existing, faults: Faults) -> List[Vip]:
    """Return the VIPs in the user's order.

    :param settings: ``vips`` and ``vrid`` of the role pair
    :param names: the members, first to last
    """
    given = settings["vips"]
    if not isinstance(given, list) or not given:
        faults.append(f"pair_vips is {shown(given)}: {no_addresses(given)}")
        return []
    vips: List[Vip] = []
    known: Set[str] = set()
    for at, item in enumerate(given):
        place = f"pair_vips[{at}]"
        fields, vip = read_vip(VIP, item, place, faults)
        if vip is None:
            continue
        if vip.address in known:
            faults.append(again(vip, place))
            continue
        known.add(vip.address)
        first = fields["first"]
        if first and first not in names:
            faults.append(f"{place}.first is '{first}', no member of the pair: name one of {', '.join(names)}.")
        if settings["sync"] and vips and first not in (None, vips[0].order[0]):
            faults.append(
                f"{place}.first is '{first}', and with pair_sync all VIPs are where the first one is, on "
                f"{vips[0].order[0]}: give it to pair_vips[0] instead."
            )
        same = of_family(vips, vip.version)[:1] if settings["one_instance"] and not is_bgp(settings) else []
        if same:
            faults.extend(_unlike(fields, same[0], place))
            vips.append(vip._replace(name=same[0].name, vrid=same[0].vrid, order=same[0].order))
            continue
        if is_bgp(settings):
            vips.append(vip._replace(name=f"vip-{vip.address}", order=[*names]))
            faults.extend(_clashes(vips[-1], vips[:-1], place, existing))
            continue
        rank = 0 if settings["sync"] else len(of_family(vips, vip.version))
        order = rotated(names, names.index(first) if first in names else rank)
        order = vips[0].order if settings["sync"] and vips else order
        vip = vip._replace(name=f"vip-{vip.address}", order=order)
        vip = vip._replace(vrid=fields["vrid"] or _vrid_of(vip, settings["vrid"], vips, existing, faults))
        faults.extend(_clashes(vip, vips, place, existing))
        vips.append(vip)
    return vips


def _unlike(fields: Dict[str, Any], same: Vip, place: str) -> Faults:
    """Say what the VIP of an instance has been given of its own."""
    own = {"vrid": same.vrid, "first": same.order[0]}
    return [
        f"{place}.{key} is {fields[key]}, and with pair_one_instance it is {value} as that of {same.address}: leave "
        "it out."
        for key, value in own.items()
        if fields[key] not in (None, value)
    ]


def _vrid_of(vip: Vip, first: Optional[int], earlier: List[Vip], existing: Existing, faults: Faults) -> int:
    """Count up from the user's VRID; else take a free one, and share it with the nth VIP of the other family."""
    rank = len(of_family(earlier, vip.version))
    if first:
        return first + rank
    others = of_family(earlier, 10 - vip.version)
    return free_vrid(vip, earlier, existing, faults, others[rank].vrid if rank < len(others) else None)


def _clashes(vip: Vip, earlier: List[Vip], place: str, existing: Existing) -> Faults:
    if vip.vrid > LAST:
        return [f"{place} would get VRID {vip.vrid}: lower pair_vrid or give it a vrid from 1 to 255."]
    return clashes(vip, earlier, place, existing)
