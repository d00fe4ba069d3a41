# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What does not go together in a proxy's configuration whose every value is good by itself. Pure.

Services, monitors and the page are dicts as ``config`` reads them; a value that was refused is its default, or None.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..checks.settings import PROTOCOLS
from ..config.schema import Faults, ip_address, refused, repeated
from .settings import NONE, Place, places

Item = Dict[str, Any]
SOME_PATH = ""  # of a monitor, whichever


class Claim(NamedTuple):
    """A listening address and its owner. Monitors may share one, with different paths."""

    owner: str
    place: Place
    path: Optional[str] = None


def of_service(service: Item, place: str, wrong: Faults) -> Faults:
    """Return what is wrong with one service, seen alone.

    :param wrong: what is wrong with its values themselves
    """
    return [*_of_check(service["check"], f"{place}.check", wrong), *_of_servers(service, place)]


def _of_check(check: Item, place: str, wrong: Faults) -> Iterator[str]:
    if check["ca"] and not check["verify"] and not refused(wrong, place, "verify"):
        yield f"{place}.ca is set, but verify is false: set verify to true, or leave ca out."
    if check["type"] in (NONE, *PROTOCOLS) and check["steps"]:
        yield f"{place}.type is {check['type']}, but steps are set: leave one of them out."
    late, limit = check.get("late_timeout") or 0, check.get("timeout") or 0
    if 0 < late <= limit:
        yield f"{place}.late_timeout is {late:g} and timeout {limit:g}, after which no answer is late: raise it."


def _of_servers(service: Item, place: str) -> Iterator[str]:
    names = [server["name"] for server in service["servers"]]
    for name in repeated([name for name in names if name]):
        named = {(server["address"], server["port"]) for server in service["servers"] if server["name"] == name}
        mend = "name each server once" if len(named) == 1 else "give each server a name of its own"
        yield f"{place}.servers has '{name}' twice: {mend}."
    own = places(service["bind"], service["port"]) if service["port"] else []
    for server in service["servers"]:
        if server["address"] and server["port"] and _is_own(server, own):
            there = Place(server["address"], server["port"])
            yield f"{place}.servers: {server['name']} at {there} is the service itself: name another address or port."


def _is_own(server: Item, own: List[Place]) -> bool:
    """Whether the service would connect to itself, as far as its configuration tells."""
    there = Place(server["address"], server["port"])
    return there in own or (is_loopback(there.address) and any(place.overlaps(there) for place in own))


def is_loopback(address: str) -> bool:
    """Whether an address is this host's own. A name, which the collection's model knows for HAProxy, is not."""
    with contextlib.suppress(ValueError):
        return bool(ip_address(address).is_loopback)
    return False


def of_shares(service: Item, workers: Optional[int], place: str) -> Iterator[str]:
    """Yield which limits of a service's servers cannot be divided among the workers."""
    for server in service["servers"]:
        limit = server["maxconn"] or 0
        if 0 < limit < (workers or 1):
            yield (
                f"{place}.servers: {server['name']} has maxconn {limit}, which {workers} workers share, and each needs "
                f"at least 1: raise it to {workers}, or set workers to {limit} or less."
            )


def of_monitor(monitor: Item, services: List[Item], place: str) -> Iterator[str]:
    """Yield which conditions of a monitor are on no service.

    A number above that of a service's servers is no fault: `follow` removes the servers of nodes that have left.
    """
    names = [service["name"] for service in services if service["name"]]
    # One whose name was refused may be meant.
    for name in [name for name in monitor["at_least"] if name not in names and len(names) == len(services)]:
        known = f"known are {', '.join(names)}" if names else "there are none"
        yield f"{place}.at_least has {name!r}, and there is no such service: {known}."


def claims(services: List[Item], monitors: List[Item], page: Optional[Item]) -> List[Claim]:
    """Return everything that listens, and where."""
    found = [Claim(f"service {each['name']}", place) for each in services for place in _places(each)]
    found += [Claim(f"monitor {each['name']}", place, each["path"]) for each in monitors for place in _places(each)]
    return found + [Claim("page", place) for place in (_places(page) if page else [])]


def _places(item: Item) -> List[Place]:
    return places(item["bind"], item["port"]) if item["port"] else []


def clashes(listeners: List[Claim]) -> Faults:
    """Return which claims exclude each other: of many that do, each with the first one."""
    by_port: Dict[int, List[Claim]] = {}
    for claim in listeners:
        by_port.setdefault(claim.place.port, []).append(claim)
    pairs = [(there[one], there[other]) for there in by_port.values() for one, other in _meeting(there)]
    return list(dict.fromkeys(_clash(one, other) for one, other in pairs))


def _meeting(there: List[Claim]) -> List[Tuple[int, int]]:
    """Return which claims of one port exclude each other, by their numbers.

    Each is held against the first of its place and the first of all addresses: ten thousand have as many sentences.
    """
    wildcards: Dict[int, int] = {}
    for at, claim in enumerate(there):
        if claim.place.is_wildcard:
            wildcards.setdefault(claim.place.family, at)
    first: Dict[Tuple[Place, Optional[str]], int] = {}
    found = []
    for at, (_owner, place, path) in enumerate(there):
        met = [first.get((place, path or SOME_PATH)), first.get((place, None))]
        met.append(None if place.is_wildcard else wildcards.get(place.family))
        found += [(min(at, other), max(at, other)) for other in met if other is not None]
        for key in (None,) if path is None else (path, SOME_PATH):
            first.setdefault((place, key), at)
    return sorted(set(found))


def _clash(one: Claim, other: Claim) -> str:
    if one.path is not None and one[1:] == other[1:]:
        return f"{one.owner} and {other.owner} both answer {one.path} on {one.place}: change one of the paths."
    if one.owner == other.owner:
        return f"{one.owner}: bind has {one.place.address} and {other.place.address}, which overlap: leave one out."
    both = f"{one.owner} and {other.owner} both listen on {other.place}"
    return f"{both}: change a port or bind them to different addresses."
