# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VIPs of an IPI-like cluster: the API's on the masters, the ingress's where routers run. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import (
    Faults,
    Field,
    address,
    integer,
    list_of,
    read,
    text,
    word,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.members import Existing, Vip
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.subnets import vip_faults
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import url_checks
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrid as _vrid
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrrp_routers

VIP = {
    "address": Field(text, required=True),
    "vrid": Field(integer(1, 255, "a VRID")),
    "name": Field(word),  # of a router shard
    "members": Field(list_of(word), []),
    "checks": Field(list_of(url_checks.url)),
}


class Wanted:
    """The VIPs of one role, ``api`` or ``ingress``, as they are read one by one."""

    def __init__(self, role: str, cluster: str, order: List[str]) -> None:
        self.role = role
        self.cluster = cluster
        self.order = order
        self.vips: List[Vip] = []
        self.checks: Dict[str, Any] = {}  # of the VIPs that bring their own, by the instance's name

    @property
    def variable(self) -> str:
        return f"ipi_{self.role}_vips"

    def title(self, spelled: Dict[str, Any], family: int, rank: int) -> str:
        parts = [self.cluster, self.role.upper(), spelled["name"] or (str(rank + 1) if rank else "")]
        return "_".join([part for part in parts if part] + (["v6"] if family == 6 else []))


def read_vips(wanted: Wanted, given: Any, vrid: Optional[int], around: Existing, taken: List[Vip]) -> Faults:
    """Fill in the VIPs of a role, each with its instance's name, its VRID and the members in order.

    :param vrid: of the first VIP in each family, by the cluster's name; shards get one that is nobody's
    :param taken: the VIPs of the other role
    """
    faults: Faults = []
    if not isinstance(given, list) or not given:
        return [f"{wanted.variable} is {given!r}: a list of at least one address is wanted."]
    for at, item in enumerate(given):
        place = f"{wanted.variable}[{at}]"
        spelled = read(VIP, item if isinstance(item, dict) else {"address": item}, place, faults)
        wrong = vip_faults(spelled["address"], place)
        faults.extend(wrong or _add(wanted, spelled, place, vrid, around, taken))
    return faults


def _add(
    wanted: Wanted, spelled: Dict[str, Any], place: str, first: Optional[int], around: Existing, taken: List[Vip]
) -> Faults:
    text_address, _slash, prefix = str(spelled["address"]).partition("/")
    bare = Vip(str(address(text_address)[0]), int(prefix) if prefix else None, 0, [])
    rank = len([vip for vip in wanted.vips if vip.version == bare.version])
    others = spelled["members"] or wanted.order
    unknown = [name for name in others if name not in wanted.order]
    if unknown:
        return [f"{place}.members names {unknown[0]}, which cannot carry it: there are {', '.join(wanted.order)}."]
    # The members take turns as first, so that several ingress VIPs are several nodes' worth of it.
    order = others[rank % len(others) :] + others[: rank % len(others)]
    vip = bare._replace(title=wanted.title(spelled, bare.version, rank), order=order)
    kin = [other for other in [*taken, *wanted.vips] if other.version == vip.version]
    vip = vip._replace(vrid=spelled["vrid"] or (first if first and not rank else _free_vrid(vip, kin, around)))
    faults = _clashes(vip, place, [*taken, *wanted.vips], kin)
    wanted.vips.append(vip)
    if spelled["checks"] is not None:
        wanted.checks[vip.name] = spelled["checks"]
    return faults


def _free_vrid(vip: Vip, kin: List[Vip], around: Existing) -> int:
    """One that no cluster's name gives; the one in use, if there is one."""
    taken = [{"vrid": other.vrid, "by": other.address} for other in kin]
    taken += vrrp_routers.taken(router for router in around.foreign_routers if router["family"] == vip.version)
    current = around.current_vrids.get(vip.name)
    return _vrid.choose(vip.address, "pool", taken, current=current, on_conflict="next").vrids.get("pair", 0)


def _clashes(vip: Vip, place: str, earlier: List[Vip], kin: List[Vip]) -> Faults:
    if any(other.address == vip.address for other in earlier):
        return [f"{place} is {vip.address} again: name each VIP once."]
    if any(other.name == vip.name for other in earlier):
        return [f"{place} would be called {vip.name} like another VIP: give it a name of its own."]
    if not vip.vrid:
        return [f"{place}: every VRID of the pool is taken on this link: give it a vrid."]
    return [
        f"{place} has VRID {vip.vrid}, which {other.address} has too: give one of them another vrid."
        for other in kin
        if other.vrid == vip.vrid
    ]
