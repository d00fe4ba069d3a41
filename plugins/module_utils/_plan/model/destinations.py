# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""To which addresses a layout sends, and which of them cannot work: its own, and loops over several layouts. Pure.

A server that is its own layout's VIP, or a balancer of it, is refused by `loops`, which the component roles ask too.
What may work is not refused: a loop is one only if no request can leave it.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple
from urllib.parse import urlsplit

from ..._agent.config.schema import Faults, place_of
from ..._agent.proxy import names
from ..._agent.proxy.settings import TCP
from . import shared
from .loops import Balancers, reaches
from .services import backends

# A peer is what none of the run's layouts can be, and a gateway what its own layout cannot be.
SERVER, CHECK, GATEWAY, PEER = "server", "check", "gateway", "peer"
LOOPS = {
    (SERVER,): "each leads to the next one, and the last to the first, so that no request arrives: name other servers.",
    (CHECK, GATEWAY): (
        "each asks what the next one holds, and the last the first, so that nobody ever holds it: name other hosts."
    ),
}
Endpoint = Tuple[str, int]  # an address and a port; 0 for a VIP as such
Node = Tuple[str, str]  # the names of a layout's members, and what of it sends
Ways = Dict[Node, List[Tuple[str, List[Node]]]]  # by sender and address: in which words, and what gets it there


class Requests(NamedTuple):
    """Which requests a backend gets, as far as it is known: of a service those that none of its routes takes.

    :ivar service: the place of the service
    :ivar hosts: and paths: none for all
    """

    service: str = ""
    mode: str = ""
    hosts: Sequence[str] = ()
    paths: Sequence[str] = ()

    def may_be(self, other: Requests) -> bool:
        """Return whether a request may be of both. The name by TLS may differ from that by HTTP."""
        hosts = [names.covers(a, b) or names.covers(b, a) for a in self.hosts for b in other.hosts]
        paths = [a.startswith(b) or b.startswith(a) for a in self.paths for b in other.paths]
        return self.mode != other.mode or ((any(hosts) or not hosts) and (any(paths) or not paths))

    def takes(self, other: Requests) -> bool:
        """Return whether a route certainly gets all of the others."""
        hosts = all(any(names.covers(own, host) for own in self.hosts) for host in other.hosts)
        paths = all(any(path.startswith(own) for own in self.paths) for path in other.paths)
        by_host, by_path = not self.hosts or (other.hosts and hosts), not self.paths or (other.paths and paths)
        return bool(self.is_routed and self.mode == other.mode and by_host and by_path)

    @property
    def is_routed(self) -> bool:
        return bool(self.hosts or self.paths)


class Destination(NamedTuple):
    """An address to which a layout sends.

    :ivar place: what the user wrote
    :ivar address: '' for one that is not known
    :ivar mend: what to name instead
    :ivar sender: of a server its service or route, else the place
    :ivar reached: where clients of the sender come in; of a check the VIPs that it takes from a member
    """

    kind: str
    place: str
    address: str
    mend: str = ""
    port: int = 0
    sender: str = ""
    reached: Sequence[Endpoint] = ()
    requests: Requests = Requests()


class Sender(NamedTuple):
    """A layout of a run.

    :ivar owned: as `owners` returns it
    """

    names: str
    sends: Sequence[Destination]
    owned: Mapping[str, str]


def of_url(place: str, url: str, answered: Mapping[str, Sequence[str]]) -> List[Destination]:
    """Return where a check asks; the address of a name is known where our own resolver answers it.

    :param answered: what it answers
    """
    host = urlsplit(url).hostname or ""
    try:
        known = [str(ipaddress.ip_address(host))]
    except ValueError:
        known = list(answered.get(host) or answered.get(f"*.{host.partition('.')[2]}", ()))
    mend = "ask localhost, or a host that does not need the VIPs."
    return [Destination(CHECK, place, address, mend) for address in known]


def of_bootstrap(address: str) -> Destination:
    return Destination(PEER, "ipi_bootstrap", address, "name the bootstrap machine's own address.")


def of_services(services: Sequence[Dict[str, Any]], place: str, known: Balancers) -> Iterator[Destination]:
    """Yield the servers, each with where clients of its service come in. A redirect is an answer, which needs none."""
    own, by_name = {*known.vips, *known.own}, shared.by_name(services)
    for at, service in enumerate(services):
        of = place_of(place, at, service)
        reached = [(each, service["port"]) for each in own if reaches(service["bind"], each)]
        back = shared.backend_of(service, by_name)
        every = backends(service, of)
        for where, backend in every if back is service else [(f"{of}.backend", back), *every]:
            route = backend if backend not in (service, back) else {}
            requests = Requests(of, service["mode"], route.get("hosts", ()), route.get("paths", ()))
            for said, address, port in _servers(backend, service, where, known):
                yield Destination(SERVER, said, address, "", port, where, reached, requests)


def _servers(
    backend: Dict[str, Any], service: Dict[str, Any], where: str, known: Balancers
) -> Iterator[Tuple[str, str, int]]:
    """Yield the servers that may get requests, backups too: in which words, the address and the port.

    What the user's own lines send elsewhere is not known, nor to which name an option changes that of TLS.
    """
    used = [server for server in backend["servers"] if server["weight"]]
    renamed = service["mode"] == TCP and any(server["options"] for server in used)
    if service["frontend_lines"] or backend["backend_lines"] or renamed or not used:
        yield where, "", 0
    for server in used:
        for address in known.resolved.get(server["address"], [server["address"] or ""]):
            yield f"{where}.servers: {server['name']}", address, server["port"]


def owners(known: Balancers, whole: str) -> Dict[str, str]:
    """Return whose each address is that a layout has; a VIP is its holder's address, too.

    :param whole: what its members are together
    """
    own = {address: f"{name}'s own address" for address, name in known.own.items()}
    return {**own, **dict.fromkeys(known.vips, f"a VIP of the {whole}")}


def faults(sends: Sequence[Destination], owned: Mapping[str, str]) -> Faults:
    """Refuse what the layout cannot be itself, and a check of the VIPs that it moves: nobody would ever hold them.

    :param owned: as `owners` returns it
    """
    elsewhere = {each.sender for each in sends if (each.address, 0) not in each.reached}
    return [
        f"{each.place} is {each.address}, {owned[each.address]}: {each.mend}"
        for each in sends
        if each.address in owned
        and (each.kind in (GATEWAY, PEER) or (each.kind == CHECK and each.sender not in elsewhere))
    ]


def between(every: Sequence[Sender]) -> Faults:
    """Refuse peers that are another layout's, and servers, and checks, that only lead in a circle."""
    peers = [(one.names, each) for one in every for each in one.sends if each.kind == PEER]
    found = [
        f"{names}: {each.place} is {each.address}, {other.owned[each.address]} of {other.names}: {each.mend}"
        for names, each in peers
        for other in every
        if other.names != names and each.address in other.owned
    ]
    for kinds, mend in LOOPS.items():
        found += [f"{'; '.join(circle)}: {mend}" for circle in _circles(_ways(every, kinds), kinds)]
    return found


def _ways(every: Sequence[Sender], kinds: Sequence[str]) -> Ways:
    """Return where each sender leads; nothing gets it there where it is none of the run's layouts."""
    sending = [(one, each) for one in every for each in one.sends if each.kind in kinds]
    entries: Dict[Endpoint, Dict[Node, Requests]] = {}
    for one, each in sending:
        for endpoint in each.reached:
            entries.setdefault(endpoint, {})[one.names, each.sender] = each.requests
    found: Ways = {}
    for one, each in sending:
        # An address of its own, such as that of docker0, is this host, even if others have it as well.
        is_own = each.kind == SERVER and each.address in one.owned
        there = {} if is_own else entries.get((each.address, each.port), {})
        said = f"{one.names}: {each.place} at {each.address}" + (f" port {each.port}" if each.port else "")
        found.setdefault((one.names, each.sender), []).append((said, _getting(each.requests, there)))
    return found


def _getting(requests: Requests, there: Mapping[Node, Requests]) -> List[Node]:
    """Return who may get some of the requests, of the services and routes that listen there."""
    routed = {(node[0], own.service) for node, own in there.items() if own.takes(requests)}
    return [
        node
        for node, own in there.items()
        if own.may_be(requests) and (own.is_routed or (node[0], own.service) not in routed)
    ]


def _stuck(ways: Ways, kinds: Sequence[str]) -> List[Node]:
    """Return the senders from which nothing ever leaves: of any address, by any service, or by all checks of a VIP."""
    stuck, before = list(ways), 0
    while len(stuck) != before:
        before, kept = len(stuck), {*stuck}
        stuck = [
            node
            for node in stuck
            if all(any(one in kept for one in there) for _said, there in ways[node])
            and (CHECK in kinds or all(one in kept for _said, there in ways[node] for one in there))
        ]
    return stuck


def _circles(ways: Ways, kinds: Sequence[str]) -> Iterator[List[str]]:
    """Yield a circle for each group of senders that lead into it, in the words of its ways."""
    stuck = _stuck(ways, kinds)
    leading = {node: [(said, one) for said, there in ways[node] for one in there if one in stuck] for node in stuck}
    following = {node: found[0] for node, found in leading.items()}
    named: List[Node] = []
    for start in stuck:
        way, at = [], start
        while at not in named:
            named.append(at)
            way.append(at)
            at = following[at][1]
        if at in way:
            yield [following[node][0] for node in way[way.index(at) :]]
