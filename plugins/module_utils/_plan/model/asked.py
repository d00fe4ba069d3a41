# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a balancer's next configuration answers the checks of its host's router. Pure.

A check goes on asking while the balancer changes, and afterwards. Where it would find nothing that answers, every
member would fail it, one after the other. Hence such a configuration is refused.

A question is ``{name, address, port, path, tls}``. What answers it depends on the address and the port where the
balancer listens, on TLS, on client certificates, on who is let in, and, where the balancer itself answers, on the path.
What raw lines answer is not known, so where they listen counts as an answer.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..._agent.proxy.rules import Claim
from ..._agent.proxy.settings import Place, places
from . import bind_line
from .services import listeners
from .tls import REQUIRED

LOCALHOST = "localhost"
PLAIN, TLS = False, True
HTTP = "http"


class Listener(NamedTuple):
    """A place where a balancer listens, and what it answers there."""

    place: Place
    over: Tuple[bool, ...] = (PLAIN, TLS)  # whether over TLS
    allow: Sequence[str] = ()  # the networks that are let in; none for everybody
    paths: Optional[Sequence[str]] = None  # what the path begins with; None for every path
    proxies: Sequence[str] = ()  # the networks of which the header of a proxy is expected


def of_services(services: Sequence[Mapping[str, Any]]) -> List[Listener]:
    return [
        Listener(place, _over(each), each["allow"], proxies=each["accept_proxy"])
        for each in listeners([dict(service) for service in services])
        for place in places(each["bind"], each["port"])
    ]


def _over(service: Mapping[str, Any]) -> Tuple[bool, ...]:
    """A check has no certificate of its own and no header of a proxy, names no server in TLS, and comes from the host
    itself. What is only relayed may be TLS.
    """
    if bind_line.link(service) or bind_line.is_behind_proxy(service):
        return ()
    tls = service["tls"]
    if tls and service["port"] != tls["redirect"]:
        return () if (tls["ca"] and tls["verify"] == REQUIRED) or tls["strict_sni"] else (TLS,)
    return (PLAIN,) if tls or service["mode"] == HTTP else (PLAIN, TLS)


def of_monitors(monitors: Sequence[Mapping[str, Any]]) -> List[Listener]:
    return [
        Listener(place, (PLAIN,), paths=[each["path"]])
        for each in monitors
        for place in places(each["bind"], each["port"])
    ]


def of_page(stats: Mapping[str, Any]) -> List[Listener]:
    """Return where haproxy's statistics are. A check has no password."""
    paths = [path for path in (stats["uri"], stats["metrics"]) if path]
    over = () if stats["password"] else (PLAIN,)
    return [Listener(place, over, paths=paths) for place in places([stats["address"]], stats["port"])]


def with_claims(known: Sequence[Listener], claims: Iterable[Claim]) -> List[Listener]:
    """Return also where something listens of which no more is known."""
    there = {each.place for each in known}
    return [*known, *(Listener(claim.place) for claim in claims if claim.place not in there)]


def faults(asked: Iterable[Mapping[str, Any]], answering: Sequence[Listener], host: str) -> Faults:
    """Refuse a configuration that leaves a check without an answer.

    :param asked: the questions that have to be answered
    :param host: its name, for the sentences
    """
    return [
        f"{host}: the check {question['name']} asks {_shown(question)}, which the balancer would no longer "
        "answer: first change the check to ask for something that stays, in a run of its own."
        for question in asked
        if not any(_answers(each, question) for each in answering)
    ]


def _shown(question: Mapping[str, Any]) -> str:
    """Return a URL without its path, which may be secret."""
    address = f"[{question['address']}]" if ":" in question["address"] else question["address"]
    return f"http{'s' if question['tls'] else ''}://{address}:{question['port']}"


def _answers(listener: Listener, question: Mapping[str, Any]) -> bool:
    begins = None if listener.paths is None else any(map(question["path"].startswith, listener.paths))
    return (
        question["tls"] in listener.over
        and begins is not False
        and any(
            listener.place.overlaps(Place(address, question["port"])) and _lets_in(listener, address)
            for address in _addresses(question["address"])
        )
    )


def _addresses(address: str) -> List[str]:
    return ["127.0.0.1", "::1"] if address == LOCALHOST else [address]


def _lets_in(listener: Listener, address: str) -> bool:
    """A host that connects to an address of its own does so from this address."""
    return (not listener.allow or _is_in(listener.allow, address)) and not _is_in(listener.proxies, address)


def _is_in(networks: Sequence[str], address: str) -> bool:
    return any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in networks)
