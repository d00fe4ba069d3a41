# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Decides which nodes are servers. Pure: the clock comes with each event.

A node is a server from the event on that announces it, and stays one until it is removed, or until it has not been
ready for ``not_ready_for``. While more nodes are not ready than are, none leaves for that: they serve, and cannot tell
the API, most probably. The list never becomes empty: then the last one stays in force. How long a node has not been
ready is measured here, so that the clocks of other hosts do not matter.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from . import nodes
from .nodes import Node
from .settings import Nodes, Server


class Known(NamedTuple):
    """What outlives a restart."""

    servers: Tuple[Server, ...] = ()
    unready: Tuple[str, ...] = ()  # the nodes that are no servers because they were not ready for too long


class Membership:
    """Mutable: the nodes, and since when which are not ready. Times are microseconds."""

    def __init__(self, about: Nodes, known: Known) -> None:
        self._about = about
        self._known = known
        self._addresses: Dict[str, Optional[str]] = {}  # of each node
        self._unready_since: Dict[str, int] = {}
        self._left_out = set(known.unready)

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self._addresses)

    def replace(self, listed: Iterable[Node], now: int) -> None:
        """Take a whole list."""
        self._addresses = {}
        for node in listed:
            self.change(node, now)
        self._unready_since = {name: at for name, at in self._unready_since.items() if name in self._addresses}
        self._left_out.intersection_update(self._addresses)

    def change(self, node: Node, now: int) -> None:
        """Take a node that is new or has changed."""
        self._addresses[node.name] = nodes.address(node, self._about)
        if node.ready:
            self._unready_since.pop(node.name, None)
            self._left_out.discard(node.name)
        else:
            self._unready_since.setdefault(node.name, now)

    def __contains__(self, name: str) -> bool:
        return name in self._addresses

    def remove(self, name: str) -> None:
        self._addresses.pop(name, None)
        self._unready_since.pop(name, None)
        self._left_out.discard(name)

    def decide(self, now: int) -> Known:
        """Return the servers that there should be now."""
        if not self._most_are_unready():
            self._left_out.update(
                name for name, since in self._unready_since.items() if now >= since + self._about.not_ready_for
            )
        found = [
            Server(name, address) for name, address in self._addresses.items() if address and name not in self._left_out
        ]
        self._known = Known(_distinct(found) or self._known.servers, tuple(sorted(self._left_out)))
        return self._known

    def due(self) -> Optional[int]:
        """Return when a node will not have been ready for too long, None if none will."""
        if self._most_are_unready():
            return None
        waiting = [since for name, since in self._unready_since.items() if name not in self._left_out]
        return min(waiting) + self._about.not_ready_for if waiting else None

    def problem(self) -> Optional[str]:
        """Return why the last list stays in force although another one was read."""
        if not self._addresses:
            return f"no node has the label {self._about.label}: label the nodes that serve, or correct nodes.label."
        if self._left_out.issuperset(self._addresses):
            return "no node is ready: see `kubectl get nodes`."
        if self._most_are_unready():
            unready = f"{len(self._unready_since)} of {len(self._addresses)} nodes"
            return f"{unready} are not ready, and none is removed for that: see `kubectl get nodes`."
        if not any(self._addresses.values()):
            return f"no node has an address of {_either(self._about.families)}: correct nodes.families."
        return None

    def _most_are_unready(self) -> bool:
        return 2 * len(self._unready_since) > len(self._addresses)

    def without_address(self) -> List[str]:
        """Return the nodes that have no address of the families."""
        return sorted(name for name, address in self._addresses.items() if not address)

    def left_out(self, name: str) -> bool:
        """Whether a node is no server because it is not ready."""
        return name in self._left_out


def _distinct(servers: List[Server]) -> Tuple[Server, ...]:
    """Return the servers by name; of two nodes with one address only the first is a server."""
    by_address: Dict[str, Server] = {}
    for server in sorted(servers):
        by_address.setdefault(server.address, server)
    return tuple(by_address.values())


def _either(families: Tuple[str, ...]) -> str:
    return " or ".join({"ipv4": "IPv4", "ipv6": "IPv6"}[family] for family in families)
