# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""To which addresses a layout sends, and which of them cannot work: its own, and loops over several layouts. Pure.

A server that is its own layout's VIP, or a balancer of it, is refused by `loops`, which the component roles ask too.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple
from urllib.parse import urlsplit

from ..._agent.config.schema import Faults, place_of
from .loops import Balancers, reaches
from .services import backends, listeners

SERVER, CHECK, PEER = "server", "check", "peer"  # a peer is what none of the run's layouts can be
MENDS = {
    SERVER: "each leads to the next one, and the last to the first, so that no request arrives: name other servers.",
    CHECK: "each asks what the next one holds, and the last the first, so that nobody ever holds it: name other hosts.",
}
Endpoint = Tuple[str, int]  # an address and a port; 0 for a VIP as such
Node = Tuple[str, str]  # the names of a layout's members, and what of it sends


class Destination(NamedTuple):
    """An address to which a layout sends.

    :ivar place: what the user wrote
    :ivar mend: what to name instead
    :ivar sender: of a server its service, else the place
    :ivar reached: where clients of the sender come in; of a check the VIPs that it takes from a member
    """

    kind: str
    place: str
    address: str
    mend: str = ""
    port: int = 0
    sender: str = ""
    reached: Sequence[Endpoint] = ()


class Sender(NamedTuple):
    """A layout of a run.

    :ivar owned: as `owners` returns it
    """

    names: str
    sends: Sequence[Destination]
    owned: Mapping[str, str]


def of_url(place: str, url: str, names: Mapping[str, Sequence[str]]) -> List[Destination]:
    """Return where a check asks; the address of a name is known where our own resolver answers it.

    :param names: what it answers
    """
    host = urlsplit(url).hostname or ""
    try:
        known = [str(ipaddress.ip_address(host))]
    except ValueError:
        known = list(names.get(host) or names.get(f"*.{host.partition('.')[2]}", ()))
    mend = "ask localhost, or a host that does not need the VIPs."
    return [Destination(CHECK, place, address, mend) for address in known]


def of_bootstrap(address: str) -> Destination:
    return Destination(PEER, "ipi_bootstrap", address, "name the bootstrap machine's own address.")


def of_services(services: Sequence[Dict[str, Any]], place: str, known: Balancers) -> Iterator[Destination]:
    """Yield the servers, each with where clients of its service come in."""
    own = {*known.vips, *known.own}
    for at, service in enumerate(services):
        sender = place_of(place, at, service)
        reached = [(each, one["port"]) for one in listeners([service]) for each in own if reaches(one["bind"], each)]
        for where, backend in backends(service, sender):
            for server in backend["servers"]:
                said, port = f"{where}.servers: {server['name']}", server["port"]
                for address in known.resolved.get(server["address"], [server["address"] or ""]):
                    yield Destination(SERVER, said, address, "", port, sender, reached)


def owners(known: Balancers, whole: str) -> Dict[str, str]:
    """Return whose each address is that a layout has; a VIP is its holder's address, too.

    :param whole: what its members are together
    """
    own = {address: f"{name}'s own address" for address, name in known.own.items()}
    return {**own, **dict.fromkeys(known.vips, f"a VIP of the {whole}")}


def faults(sends: Iterable[Destination], owned: Mapping[str, str]) -> Faults:
    """Refuse checks and peers that are the layout's own: who needs a VIP to hold it never does.

    :param owned: as `owners` returns it
    """
    return [
        f"{each.place} is {each.address}, {owned[each.address]}: {each.mend}"
        for each in sends
        if each.kind != SERVER and each.address in owned
    ]


def between(every: Sequence[Sender]) -> Faults:
    """Refuse peers that are another layout's, and circles of servers, or of checks, over several of them."""
    peers = [(one.names, each) for one in every for each in one.sends if each.kind == PEER]
    found = [
        f"{names}: {each.place} is {each.address}, {other.owned[each.address]} of {other.names}: {each.mend}"
        for names, each in peers
        for other in every
        if other.names != names and each.address in other.owned
    ]
    for kind in MENDS:
        nodes = [(one.names, each) for one in every for each in one.sends if each.kind == kind]
        found += [f"{'; '.join(circle)}: {MENDS[kind]}" for circle in _circles(_edges(nodes))]
    return found


def _edges(nodes: Sequence[Tuple[str, Destination]]) -> Dict[Node, Dict[Node, str]]:
    """Return which sender leads to which of another layout, and in which words."""
    entries: Dict[Endpoint, Dict[Node, None]] = {}
    for names, each in nodes:
        for endpoint in each.reached:
            entries.setdefault(endpoint, {})[names, each.sender] = None
    found: Dict[Node, Dict[Node, str]] = {}
    for names, each in nodes:
        for there in entries.get((each.address, each.port), ()):
            if there[0] != names:
                said = f"{names}: {each.place} at {each.address}" + (f" port {each.port}" if each.port else "")
                found.setdefault((names, each.sender), {}).setdefault(there, said)
    return found


def _circles(edges: Mapping[Node, Mapping[Node, str]]) -> Iterator[List[str]]:
    """Yield the shortest circle through each sender, each circle once, in the words of its edges."""
    seen: List[Any] = []
    for start in edges:
        way = _way_back(start, edges)
        if way and {*way} not in seen:
            seen.append({*way})
            yield [edges[one][other] for one, other in zip(way, [*way[1:], start])]


def _way_back(start: Node, edges: Mapping[Node, Mapping[Node, str]]) -> List[Node]:
    """Return the shortest way from a sender back to it, without its end; nothing where there is none."""
    ways, reached = [[start]], {start}
    while ways:
        if any(start in edges.get(way[-1], ()) for way in ways):
            return next(way for way in ways if start in edges.get(way[-1], ()))
        further = {there: [*way, there] for way in ways for there in edges.get(way[-1], ()) if there not in reached}
        reached.update(further)
        ways = [*further.values()]
    return []
