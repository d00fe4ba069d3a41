# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VIPs of an IPI-like cluster: the API's on the masters, the ingress's where routers run. Pure."""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Optional, Tuple

from ..._agent.config.schema import Faults, Field, anything, list_of, no_addresses, shown, word
from ..dns.names import domain
from ..layouts.vips import BASE_VIP, again, clashes, free_vrid, of_family, read_vip, rotated
from ..members.hosts import Existing
from ..model import url_checks
from ..model.plan import Vip

SHARD = {
    "name": Field(word),
    "domain": Field(anything),  # of its routes
    "members": Field(list_of(word), []),
    "checks": Field(list_of(url_checks.url)),
}
NO_SHARD = {key: field.default for key, field in SHARD.items()}
VIP = {"api": BASE_VIP, "ingress": {**BASE_VIP, **SHARD}}


class RoleVips:
    """The VIPs of one role of the cluster, ``api`` or ``ingress``, as they are read one by one."""

    def __init__(
        self, role: str, cluster: str, carriers: List[str], vrid: Optional[int], announced: bool = False
    ) -> None:
        """
        :param carriers: the nodes that may carry them, in order
        :param vrid: of the first VIP in each family, by the cluster's name; further ones get a free one
        :param announced: whether BGP announces them, from all of these nodes and without VRIDs
        """
        self.role, self.cluster, self.carriers, self.vrid = role, cluster, carriers, vrid
        self.announced = announced
        self.vips: List[Vip] = []
        self.checks: Dict[str, Any] = {}  # of the VIPs that have their own, by the instance's name
        self.shards: List[Vip] = []

    def read(self, given: Any, existing: Existing, taken: List[Vip]) -> Faults:
        """Fill in the VIPs, each with its instance's name, its VRID and the nodes in order.

        :param taken: the VIPs of the other role
        """
        faults: Faults = []
        if not isinstance(given, list) or not given:
            return [f"ipi_{self.role}_vips is {shown(given)}: {no_addresses(given)}"]
        read_ones = []
        for at, item in enumerate(given):
            place = f"ipi_{self.role}_vips[{at}]"
            fields, vip = read_vip(VIP[self.role], item, place, faults)
            fields = {**NO_SHARD, **fields}
            if fields["domain"]:
                domain(fields["domain"], f"{place}.domain", faults)
            read_ones.append((place, fields, vip))
        shards = [fields for _place, fields, _vip in read_ones if _is_of_shard(fields)]
        of_shards = {name for fields in shards for name in fields["members"]}
        known = {each.address for each in taken}
        for place, fields, vip in read_ones:
            if vip and vip.address in known:
                faults.append(again(vip, place))
                continue
            known.update([vip.address] if vip else [])
            order, wrong = self._order(fields, of_shards)
            faults.extend(f"{place}{fault}" for fault in wrong)
            if vip and not wrong:
                self._add(vip._replace(order=order), fields, place, existing, taken, faults)
        return faults

    def _order(self, fields: Dict[str, Any], of_shards: Collection[str]) -> Tuple[List[str], Faults]:
        """Return the nodes that may carry a VIP, or what is wrong with them, to follow the VIP's place.

        Ports 80 and 443 of a node belong to the routers of one shard, or to the default ones.

        :param of_shards: the nodes with the routers of a shard
        """
        order = fields["members"]
        unknown = [name for name in order if name not in self.carriers]
        if unknown:
            known = ", ".join(self.carriers)
            return order, [f".members names {unknown[0]}, which cannot carry it: there are {known}."]
        if len(set(order)) == 1:
            return order, [f".members has {order[0]} alone: name a second node, which can take the VIP over."]
        if _is_of_shard(fields) and not order:
            return order, [" is of a router shard and lacks 'members': name the nodes that run its routers."]
        order = order or [name for name in self.carriers if name not in of_shards]
        if of_shards and len(order) < 2:
            left = order[0] if order else "no node"
            return order, [f" has {left} left besides the members of router shards: name its own members, two or more."]
        return order, []

    def _add(
        self, vip: Vip, fields: Dict[str, Any], place: str, existing: Existing, taken: List[Vip], faults: Faults
    ) -> None:
        rank, earlier = len(of_family(self.vips, vip.version)), [*taken, *self.vips]
        vip = vip._replace(name=self._instance_name(vip, fields["name"], rank))
        if not self.announced:
            by_name = self.vrid if not rank else None
            vrid = fields["vrid"] or by_name or free_vrid(vip, earlier, existing, faults)
            vip = vip._replace(vrid=vrid, order=rotated(vip.order, rank))
        faults.extend(clashes(vip, earlier, place, existing))
        self.vips.append(vip)
        self.shards += [vip] if _is_of_shard(fields) else []
        if fields["checks"] is not None:
            self.checks[vip.name] = fields["checks"]

    @property
    def of_installer(self) -> List[Vip]:
        """The VIPs that OpenShift itself knows: the first one of each family, without those of router shards."""
        usual = [vip for vip in self.vips if vip not in self.shards]
        return [vip for vip in usual if vip == of_family(usual, vip.version)[0]]

    def _instance_name(self, vip: Vip, shard: Optional[str], rank: int) -> str:
        parts = [self.cluster, self.role.upper(), shard or (str(rank + 1) if rank else "")]
        return "_".join([part for part in parts if part] + (["v6"] if vip.version == 6 else []))


def _is_of_shard(fields: Dict[str, Any]) -> bool:
    return bool(fields["name"] or fields["domain"])
