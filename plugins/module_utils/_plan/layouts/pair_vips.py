# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VIPs of a pair: each with its VRID and the members that may hold it, from what the user wrote. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import Faults, Field, word
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import vips as _vips
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.members import Existing
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Vip
from ansible_collections.onprem.lb.plugins.module_utils._shared.vrid import LAST

VIP = {**_vips.VIP, "first": Field(word)}


def read_vips(settings: Dict[str, Any], names: List[str], existing: Existing, faults: Faults) -> List[Vip]:
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
        spelled, vip = _vips.read_vip(VIP, item, place, faults)
        if vip is None:
            continue
        first = spelled["first"]
        if first and first not in names:
            faults.append(f"{place}.first is '{first}', no member of the pair: name one of {', '.join(names)}.")
        rank = len(_vips.of_family(vips, vip.version))
        order = _vips.rotated(names, names.index(first) if first in names else rank)
        vip = vip._replace(name=f"vip-{vip.address}", order=order)
        vip = vip._replace(vrid=spelled["vrid"] or _vrid_of(vip, settings["vrid"], vips, existing, faults))
        faults.extend(_clashes(vip, vips, place))
        vips.append(vip)
    return vips


def _vrid_of(vip: Vip, first: Optional[int], earlier: List[Vip], existing: Existing, faults: Faults) -> int:
    """Count up from the user's VRID; else take a free one, and share it with the nth VIP of the other family."""
    rank = len(_vips.of_family(earlier, vip.version))
    if first:
        return first + rank
    others = _vips.of_family(earlier, 10 - vip.version)
    return _vips.free_vrid(vip, earlier, existing, faults, others[rank].vrid if rank < len(others) else None)


def _clashes(vip: Vip, earlier: List[Vip], place: str) -> Faults:
    if vip.vrid > LAST:
        return [f"{place} would get VRID {vip.vrid}: lower pair_vrid or give it a vrid from 1 to 255."]
    return _vips.clashes(vip, earlier, place)
