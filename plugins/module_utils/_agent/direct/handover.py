# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a table comes into use on a host whose own programs have connections of its services. Pure.

At first the table leaves everything to this host, and notes each new connection. Once the kernel has that, the older
connections are those of the sockets that there are, and one transaction notes them and ends this state. So none is
overlooked between the list and the table.
"""

from __future__ import annotations

from typing import Collection, Dict, Iterable

from .rulesets import OWN_PER_BUCKET, Place, Table, command, element
from .sockets import Connection

ROOM = 8  # a part of the set that stays free for connections that begin meanwhile


def settling(table: Table, places: Collection[Place]) -> Table:
    """Return a table that leaves everything to this host that is for these places, and notes their new connections."""
    if not places:
        return table
    elements = {name: dict(found) for name, found in table.elements.items()}
    for place in places:
        for name in ("left", "settling"):
            elements[f"{table.places[place]}_{name}"][element(*place)] = ""
    return table._replace(elements=elements, settling=frozenset(places))


def noted(table: Table, connections: Iterable[Connection]) -> str:
    """Return an nft file that notes the connections of this host's own programs, as many as a set takes."""
    found: Dict[str, Dict[str, str]] = {}
    for each in connections:
        for place in table.sockets.get((each.local, each.port), ()):
            key = element(*place, each.client, each.client_port)
            found.setdefault(table.places[place], {})[key] = ""
    return "".join(command("add", f"{pool}_own", _fitting(keys, _size(table, pool))) for pool, keys in found.items())


def _size(table: Table, pool: str) -> int:
    buckets = sum(len(table.elements.get(f"{pool}_{name}", ())) for name in ("macs", "here"))
    return OWN_PER_BUCKET * buckets


def _fitting(keys: Dict[str, str], size: int) -> Dict[str, str]:
    return dict(list(keys.items())[: size - size // ROOM])
