# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hosts of routes: names, and wildcards for every name below a domain. The first route that has a name gets it."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Sequence

from ..config import fields
from ..config.schema import place_of

WILDCARD = "*."
_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,252})"
HOST = re.compile(rf"(\*\.)?{_NAME}", re.ASCII)


def host(value: Any) -> fields.Checked:
    """The name of a host as a client asks for it, without a port, or a wildcard."""
    if isinstance(value, str) and HOST.fullmatch(value):
        return value, None
    return None, "the name of a host, without a port, or all below one, such as *.example.com, is required."


def below(wildcard: str) -> str:
    """Return how each name ends that a wildcard is for."""
    return wildcard[1:].lower()


def is_wildcard(name: str) -> bool:
    return name.startswith(WILDCARD)


def covers(one: str, other: str) -> bool:
    """Whether a host of a route takes all names of another."""
    if is_wildcard(one):
        return other.lower().endswith(below(one))
    return one.lower() == other.lower()


def shadowed(routes: Sequence[Dict[str, Any]], place: str, with_names: bool) -> Iterator[str]:
    """Yield a sentence for each host that an earlier route takes, so that its own route never gets a client.

    :param with_names: whether hosts that are not wildcards take each other as well
    """
    earlier: List[Any] = []
    for at, route in enumerate(routes):
        where = place_of(f"{place}.routes", at, route)
        for own in route["hosts"]:
            for taker, taken in earlier:
                if covers(taken, own) and (with_names or is_wildcard(taken)):
                    yield f"{where}.hosts has {own}, which {taker} takes first ({taken}): put {where} before it."
        earlier += [] if route.get("paths") else [(where, each) for each in route["hosts"]]
