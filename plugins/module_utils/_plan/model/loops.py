# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a balancer would connect to itself. Pure.

One client of such a loop takes every descriptor, and the server's check passes all the while.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from ..._agent.config.schema import Faults, place_of
from ..._agent.proxy.rules import is_loopback
from .services import ANY, backends, binds_overlap

Service = Dict[str, Any]


class Balancers(NamedTuple):
    """Where clients reach the balancers, as far as it is known."""

    vips: Collection[str]
    own: Mapping[str, str]  # whose each address is
    resolved: Mapping[str, Sequence[str]] = {}  # the addresses of servers' names


def of_host(
    vips: Sequence[str],
    addresses: Iterable[Mapping[str, Any]],
    host: str,
    resolved: Mapping[str, Sequence[str]],
) -> Balancers:
    """Return what is known of one host.

    :param vips: the addresses that its router may take
    :param addresses: those that it has, as `host_info` returns them
    :param resolved: those of servers' names, likewise
    """
    own = {each["address"]: host for each in addresses if not is_loopback(each["address"])}
    return Balancers([vip.partition("/")[0] for vip in vips], own, resolved)


def faults(services: List[Service], known: Balancers, place: str) -> Faults:
    """Return a sentence for each server that is a balancer.

    :param services: every one of the balancers, as `services.read_services` returns them
    :param place: their variable
    """
    listening = Listening(services)
    known = known._replace(vips=frozenset(known.vips))
    return [
        fault
        for at, service in enumerate(services)
        for where, backend in backends(service, place_of(place, at, service))
        for server in backend["servers"]
        for fault in _of_server(server, backend, listening, known, f"{where}.servers: {server['name']}")
    ]


class Listening:
    """Where services listen, counted: they are asked for each server."""

    def __init__(self, services: List[Service]) -> None:
        self._counts = Counter((each["port"], address) for each in services for address in set(each["bind"]))

    def at(self, address: str, port: int, besides: Service) -> bool:
        """Return whether one of them listens there.

        :param besides: the one that does not count; a route, which listens nowhere by itself, or nothing, for all
        """
        own = besides.get("bind", ()) if besides.get("port") == port else ()
        every = [ANY, address, *(["::"] if ":" in address else [])]
        return any(self._counts[port, each] > (each in own) for each in every)


def _of_server(
    server: Dict[str, Any], service: Service, listening: Listening, known: Balancers, place: str
) -> Iterator[str]:
    written, port = server["address"], server["port"]
    for address in known.resolved.get(written, [written] if written else []):
        there = f"{place} at {written if written == address else f'{written} ({address})'} port {port}"
        if address in known.vips:
            yield f"{there} is a VIP, which comes back to the balancer: name the server's own address."
        elif address in known.own and listening.at(address, port, {}):
            yield f"{there} is the balancer on {known.own[address]}: name another address or port."
        elif is_loopback(address) and listening.at(address, port, service):
            yield f"{there} is the balancer itself: name another address or port."


def reaches(bind: List[str], address: str) -> bool:
    """Whether who listens there can be reached at an address."""
    return binds_overlap(bind, [address]) or (":" in address and "::" in bind)
