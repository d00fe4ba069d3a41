# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""In which order hosts restart their resolvers. Pure.

One after another, and never all at once: each is without its own names for that moment. Of many hosts several restart
in one turn, because a run would take too long; the first one is alone, so that what is wrong with all is found there.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

MOST = 10  # turns


def is_due(host: Mapping[str, Any], unit: str) -> bool:
    """Whether a host's resolver runs, and is to start with other files.

    :param host: its variables
    """
    compared, read = host.get("__resolver_compared", {}), host.get("__resolver_host", {})
    differs = compared.get("paths") or compared.get("stale")
    return bool(differs) and unit in read.get("active_units", [])


def turns(waiting: Sequence[str]) -> List[List[str]]:
    """Return the turns, in the order of the hosts.

    :param waiting: the hosts that restart their resolvers
    """
    first, rest = [*waiting[:1]], waiting[1:]
    size = -(-len(rest) // (MOST - 1)) or 1
    return [turn for turn in [first, *([*rest[at : at + size]] for at in range(0, len(rest), size))] if turn]


def at_once(count: int) -> int:
    """Return how many of some hosts may do so together, where nobody makes turns of them."""
    return -(-count // MOST)
