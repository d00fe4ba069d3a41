# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a layout's balancers would connect to themselves, or listen where no client can come. Pure."""

from __future__ import annotations

import contextlib
import ipaddress
from typing import Any, Dict, Iterator, List, Sequence

from ..._agent.config.schema import Faults, place_of
from ..model import loops
from ..model.plan import Vip
from ..model.services import ANY
from .hosts import Member

ANYWHERE = (ANY, "::")

Service = Dict[str, Any]


def faults(services: List[Service], vips: Sequence[Vip], members: List[Member], place: str) -> Faults:
    """Return a sentence for each server that is a balancer of the layout, and for each address that nobody has.

    :param services: as `read_services` returns them
    :param place: of the services, for the sentences
    """
    known = known_of(vips, members)
    found = loops.faults(services, known, place)
    if all("assumed" not in info for member in members for info in member["host"]["addresses"]):
        for at, service in enumerate(services):
            found += _unreachable(service, {*known.own, *known.vips}, place_of(place, at, service))
    return found


def known_of(vips: Sequence[Vip], members: List[Member]) -> loops.Balancers:
    return loops.Balancers([vip.address for vip in vips], own_addresses(members), resolved_names(members))


def own_addresses(members: List[Member]) -> Dict[str, str]:
    """Return whose each address is, as far as it is known."""
    found = {
        info["address"]: member["name"]
        for member in members
        for info in member["host"]["addresses"]
        if not info.get("assumed") and not ipaddress.ip_address(info["address"]).is_loopback
    }
    for member in members:
        with contextlib.suppress(ValueError):  # a name
            found.setdefault(str(ipaddress.ip_address(member.get("address", ""))), member["name"])
    return found


def resolved_names(members: List[Member]) -> Dict[str, List[str]]:
    """Return the addresses that servers' names have on any member, as far as the members were asked."""
    found: Dict[str, List[str]] = {}
    for member in members:
        for name, addresses in member["host"].get("resolved", {}).items():
            known = found.setdefault(name, [])
            known += [address for address in addresses if address not in known]
    return found


def _unreachable(service: Service, known: Any, place: str) -> Iterator[str]:
    for address in service["bind"]:
        if address not in ANYWHERE and address not in known and not ipaddress.ip_address(address).is_loopback:
            yield f"{place}.bind has {address}, which is no VIP here and no member's address: name a VIP, or '*'."
