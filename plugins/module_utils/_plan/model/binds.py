# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where haproxy listens, and which two of these places are one. Pure.

``haproxy -c`` accepts two binds of one place. The kernel then gives some connections to the one and some to the other:
where only one of them has TLS, a part of the clients fails.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, Iterator, List, Sequence

from ..._agent.config.schema import Faults, place_of
from ..._agent.proxy import rules
from ..._agent.proxy.rules import Claim
from ..._agent.proxy.settings import ANY, ANY6, Place
from . import answers, bind_line
from .services import listeners

Item = Dict[str, Any]

LISTENS = re.compile(r"\s*(?:bind|stats\s+socket)\s+([^\s#]+)")
PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
# Listeners of other kinds, and those of which another word says that they may share a place.
OTHER_KINDS = re.compile(r"/|(unix|abns|abnsz|fd|sockpair|rhttp|udp[46]?|quic[46]?)@")
SHARING = frozenset(("interface", "namespace", "process", "thread"))


def clashes(services: Sequence[Item], others: List[Claim]) -> Faults:
    """Return a sentence for each two listeners that meet.

    :param others: what listens besides the services
    """
    by_link: Dict[str, List[Item]] = {}
    for service in services:
        by_link.setdefault(bind_line.link(service), []).append(service)
    every = {"": [], **by_link}
    return [
        fault
        for link, there in every.items()
        for fault in rules.clashes([*rules.claims(listeners(there), [], None), *([] if link else others)])
    ]


def of_monitors(monitors: Sequence[Item]) -> List[Claim]:
    """Return where monitors listen. As HAProxy has it, no two of them share a place."""
    return [claim._replace(path=None) for claim in rules.claims([], list(monitors), None)]


def of_page(page: Sequence[Place]) -> List[Claim]:
    """Return where the statistics are."""
    return [Claim("the statistics page", place) for place in page]


def of_answers(port: int, place: str) -> List[Claim]:
    """Return where the balancer answers the check that tells whether it hangs.

    :param place: the port's variable
    """
    return [Claim(place, Place(answers.ADDRESS, port))] if port else []


def reachable(claims: Sequence[Claim]) -> List[int]:
    """Return the ports that other hosts may reach."""
    return sorted({claim.place.port for claim in claims if not _is_loopback(claim.place.address)})


def _is_loopback(address: str) -> bool:
    return address != ANY and ipaddress.ip_address(address).is_loopback


def of_services(services: Sequence[Item], place: str) -> List[Claim]:
    """Return where raw lines of services listen.

    :param place: the services' variable
    """
    return [
        claim
        for at, service in enumerate(services)
        for claim in of_lines(service["frontend_lines"], f"{place_of(place, at, service)}.frontend_lines")
    ]


def of_lines(lines: Sequence[str], place: str) -> List[Claim]:
    """Return where raw lines listen: those that begin with `bind` or `stats socket`."""
    return [claim for line in lines for claim in _of_line(line, place)]


def _of_line(line: str, place: str) -> Iterator[Claim]:
    found = LISTENS.match(line)
    options = line[found.end() :].split() if found else []
    if found and SHARING.isdisjoint(options):
        for address in found.group(1).replace('"', "").split(","):
            for where in _places(address, "v6only" in options):
                yield Claim(f"'{found.group().strip()}' of {place}", where)


def _places(text: str, v6only: bool) -> Iterator[Place]:
    """Yield the places of an address as haproxy reads it. What only the host could resolve has none."""
    if OTHER_KINDS.match(text):
        return
    family, _at, rest = text.rpartition("@")
    host, _colon, ports = rest.rpartition(":")
    found = PORTS.fullmatch(ports)
    if not found:
        return
    for address in _addresses(host.strip("[]"), family.endswith("6"), v6only):
        for port in range(int(found.group(1)), int(found.group(2) or found.group(1)) + 1):
            yield Place(address, port)


def _addresses(host: str, is_ipv6: bool, v6only: bool) -> List[str]:
    if host in ("", ANY, "0.0.0.0"):
        return [ANY6 if is_ipv6 else ANY]
    if host == ANY6:
        return [ANY6] if v6only else [ANY6, ANY]
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return []
