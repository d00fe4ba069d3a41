# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Services whose requests go to the servers of another one, `backend`, which HAProxy checks once for all. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Sequence

from ..._agent.config.schema import Faults, place_of, refused
from . import returns
from .stick import COOKIE

Service = Dict[str, Any]

OF_OWN = {**returns.OF_SERVERS, "backend_lines": [], "return": None}  # with what says nothing


def own_faults(given: Mapping[str, Any], service: Service, place: str, faults: Faults) -> Iterator[str]:
    """Refuse what a service says of servers that it has not.

    :param given: the service as the user wrote it
    """
    if service["servers"]:
        yield f"{place} has servers and backend, which is a service with others: leave one of them out."
    for key, usual in OF_OWN.items():
        if given.get(key) not in (None, usual) and not refused(faults, place, key):
            yield f"{place}.{key} is for servers of its own, and backend is a service that has others: leave it out."


def faults(services: Sequence[Service], place: str) -> Iterator[str]:
    """Refuse a service that is not there, has no servers either, or which HAProxy would not join with this one."""
    known = by_name(services)
    for at, service in enumerate(services):
        if service["backend"]:
            yield from _of_one(service, known, place_of(place, at, service))


def _of_one(service: Service, known: Mapping[str, Service], place: str) -> Iterator[str]:
    name, other = service["backend"], known.get(service["backend"])
    if None in known:  # the one that was refused may be meant
        return
    if other is None:
        yield f"{place}.backend is {name}, and there is no such service: known are {', '.join(known)}."
    elif other is service:
        yield f"{place}.backend is {name}, which is this service itself: name another one, or give it servers."
    elif other["backend"]:
        yield f"{place}.backend is {name}, which has no servers of its own: name one that has."
    elif other["mode"] != service["mode"]:
        yield f"{place}.backend is {name}, whose mode is {other['mode']}: set mode to that, or give it servers."
    elif (other["sticky"] or {}).get("by") == COOKIE and other["tls"] and not service["tls"]:
        yield f"{place}.backend is {name}, whose cookie is for TLS alone: give it tls, or stick by source."


def by_name(services: Sequence[Service]) -> Dict[str, Service]:
    return {service["name"]: service for service in services}


def backend_of(service: Service, known: Mapping[str, Service]) -> Service:
    """Return the service to whose servers one sends: itself, unless it names another one.

    :param known: all of them, by name
    """
    return known.get(service["backend"], service)
