# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VIPs of an IPI-like cluster: the API's on the masters, the ingress's where routers run. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..._agent.config.schema import Faults, Field, list_of, word
from ..model import url_checks
from ..model.plan import Vip
from .members import Existing
from .vips import BASE_VIP, clashes, free_vrid, of_family, read_vip, rotated

VIP = {
    **BASE_VIP,
    "name": Field(word),  # of a router shard
    "members": Field(list_of(word), []),
    "checks": Field(list_of(url_checks.url)),
}


class RoleVips:
    """The VIPs of one role of the cluster, ``api`` or ``ingress``, as they are read one by one."""

    def __init__(self, role: str, cluster: str, carriers: List[str], vrid: Optional[int]) -> None:
        """
        :param carriers: the nodes that may carry them, in order
        :param vrid: of the first VIP in each family, by the cluster's name; further ones get a free one
        """
        self.role, self.cluster, self.carriers, self.vrid = role, cluster, carriers, vrid
        self.vips: List[Vip] = []
        self.checks: Dict[str, Any] = {}  # of the VIPs that have their own, by the instance's name

    def read(self, given: Any, existing: Existing, taken: List[Vip]) -> Faults:
        """Fill in the VIPs, each with its instance's name, its VRID and the nodes in order.

        :param taken: the VIPs of the other role
        """
        faults: Faults = []
        if not isinstance(given, list) or not given:
            return [f"ipi_{self.role}_vips is {given!r}: a list of at least one address is wanted."]
        for at, item in enumerate(given):
            place = f"ipi_{self.role}_vips[{at}]"
            fields, vip = read_vip(VIP, item, place, faults)
            if vip:
                self._add(vip, fields, place, existing, taken, faults)
        return faults

    def _add(
        self, vip: Vip, fields: Dict[str, Any], place: str, existing: Existing, taken: List[Vip], faults: Faults
    ) -> None:
        rank, earlier = len(of_family(self.vips, vip.version)), [*taken, *self.vips]
        order = fields["members"] or self.carriers
        unknown = [name for name in order if name not in self.carriers]
        if unknown:
            known = ", ".join(self.carriers)
            faults.append(f"{place}.members names {unknown[0]}, which cannot carry it: there are {known}.")
            return
        vip = vip._replace(name=self._instance_name(vip, fields["name"], rank), order=rotated(order, rank))
        by_name = self.vrid if not rank else None
        vrid = fields["vrid"] or by_name or free_vrid(vip, earlier, existing, faults)
        vip = vip._replace(vrid=vrid)
        faults.extend(clashes(vip, earlier, place))
        self.vips.append(vip)
        if fields["checks"] is not None:
            self.checks[vip.name] = fields["checks"]

    def _instance_name(self, vip: Vip, shard: Optional[str], rank: int) -> str:
        parts = [self.cluster, self.role.upper(), shard or (str(rank + 1) if rank else "")]
        return "_".join([part for part in parts if part] + (["v6"] if vip.version == 6 else []))
