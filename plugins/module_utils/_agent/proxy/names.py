# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hosts of routes: names, and wildcards for every name below a domain. The first route that has a name gets it."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Sequence, Tuple

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
    """Yield a sentence for each host that an earlier route takes first, so that its own route never gets a client.

    :param with_names: whether hosts that are not wildcards take each other as well
    """
    earlier: Dict[str, Tuple[int, str, str]] = {}  # what `covers` compares -> the first that has it
    for at, route in enumerate(routes):
        where = place_of(f"{place}.routes", at, route)
        for own in route["hosts"]:
            takers = [earlier[each] for each in _taken_as(own) if each in earlier]
            if takers:
                _number, taker, taken = min(takers)
                yield f"{where}.hosts has {own}, which {taker} takes first ({taken}): put {where} before it."
        for each in [] if route.get("paths") else route["hosts"]:
            if with_names or is_wildcard(each):
                earlier.setdefault(below(each) if is_wildcard(each) else each.lower(), (len(earlier), where, each))


def _taken_as(name: str) -> List[str]:
    """Return a name, and how those of the wildcards end that cover it."""
    lower = name.lower()
    return [lower, *(lower[at:] for at, sign in enumerate(lower) if sign == "." and at)]
