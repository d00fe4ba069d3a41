# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a balancer would connect to itself. Pure.

One client of such a loop takes every descriptor, and the server's check passes all the while.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ..._agent.config.schema import Faults, place_of
from ..._agent.proxy.rules import is_loopback
from .services import backends, binds_overlap

Service = Dict[str, Any]


def of_host(
    services: List[Service], vips: Sequence[str], addresses: Iterable[Mapping[str, Any]], host: str, place: str
) -> Faults:
    """Return the loops of a balancer of which one host is known.

    :param vips: the addresses that its router may take
    :param addresses: those that it has, as `host_info` returns them
    """
    floating = [vip.partition("/")[0] for vip in vips]
    own = {each["address"]: host for each in addresses if not is_loopback(each["address"])}
    return [
        fault
        for at, service in enumerate(services)
        for where, backend in backends(service, place_of(place, at, service))
        for fault in of_service(backend, services, floating, own, where)
    ]


def of_service(
    service: Service, all_of_them: List[Service], vips: Sequence[str], own: Mapping[str, str], place: str
) -> Faults:
    """Return a sentence for each server that is a balancer.

    :param all_of_them: every service of the balancers, as `services.read_services` returns them
    :param own: whose each address of the balancers is, as far as it is known
    """
    found = []
    for server in service["servers"]:
        address, port = server["address"], server["port"]
        if not address:
            continue
        there = f"{place}.servers: {server['name']} at {address} port {port}"
        others = [each for each in all_of_them if each is not service]
        if address in vips:
            found.append(f"{there} is a VIP, which comes back to the balancer: name the server's own address.")
        elif address in own and _listens(all_of_them, address, port):
            found.append(f"{there} is the balancer on {own[address]}: name another address or port.")
        elif is_loopback(address) and _listens(others, address, port):
            found.append(f"{there} is the balancer itself: name another address or port.")
    return found


def _listens(services: List[Service], address: str, port: int) -> bool:
    return any(each["port"] == port and _reaches(each["bind"], address) for each in services)


def _reaches(bind: List[str], address: str) -> bool:
    return binds_overlap(bind, [address]) or (":" in address and "::" in bind)
