# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where haproxy listens, and which two of these places are one. Pure.

``haproxy -c`` accepts two binds of one place. The kernel then gives some connections to the one and some to the other:
where only one of them has TLS, a part of the clients fails.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ..._agent.config.schema import Faults
from ..._agent.proxy import rules
from ..._agent.proxy.rules import Claim
from ..._agent.proxy.settings import Place
from . import answers, bind_line, raw_binds
from .raw_binds import Raw
from .services import listeners

Item = Dict[str, Any]


def clashes(services: Sequence[Item], others: List[Claim], raws: Sequence[Raw]) -> Faults:
    """Return a sentence for each two listeners that meet.

    :param others: what listens besides the services and raw lines
    """
    by_link: Dict[str, List[Item]] = {}
    for service in services:
        by_link.setdefault(bind_line.link(service), []).append(service)
    every = {"": [], **by_link}
    others = [*others, *raw_binds.plain(raws)]
    found = [
        fault
        for link, there in every.items()
        for fault in rules.clashes([*rules.claims(listeners(there), [], None), *([] if link else others)])
    ]
    return [*found, *raw_binds.clashes(raws)]


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
    return sorted({claim.place.port for claim in claims if not raw_binds.is_loopback(claim.place)})
