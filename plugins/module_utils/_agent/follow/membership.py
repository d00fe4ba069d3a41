# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Decides which nodes are servers. Pure: the clock comes with each event.

A node is a server from the event on that announces it. It leaves for a reason that is known, and for nothing else: it
was deleted, it is not in a complete list, it has not been ready for ``not_ready_for``, or the user wants it. A node
that is there and ready stays a server although its label, its address or its family is missing. While more than half of
the nodes would leave but are there, none does: they serve, and cannot tell the API, most probably. The list never
becomes empty. How long a node has not been ready is measured here, so that the clocks of other hosts do not matter.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from . import addressing, selector, words
from .addressing import Answering, Assignment, Offered
from .nodes import Node
from .settings import MILLION, Nodes, Server

ASK_AGAIN = 5 * MILLION  # whether a server whose node is elsewhere, as the API has it, still answers


class Known(NamedTuple):
    """What outlives a restart."""

    servers: Tuple[Server, ...] = ()
    unready: Tuple[Server, ...] = ()  # the nodes that are none because they were not ready for too long, as they were


class Kept(NamedTuple):
    """A server that stays although the API server does not say that its node is one there."""

    name: str
    address: str
    why: str


class Membership:
    """Mutable: the nodes, and since when which are not ready. Times are microseconds."""

    def __init__(self, about: Nodes, known: Known, relabelled: bool = False, of_balancer: bool = False) -> None:
        """
        :param relabelled: whether the known servers are those of another label, which the user has changed
        :param of_balancer: whether they are those of the balancer's file, where nodes may have other names
        """
        self._of_balancer = of_balancer
        self._about, self._known, self._relabelled = about, known, relabelled
        self._selector = selector.parse(about.label)
        self._nodes: Dict[str, Node] = {}  # all of them
        self._offers: Dict[str, Offered] = {}
        self._unready_since: Dict[str, int] = {}
        self._left_out = {each.name for each in known.unready}
        # The address at which each node was a server, while it is there.
        self._last = {each.name: each.address for each in known.unready if each.address}
        self._leaving: Set[str] = set()  # the nodes that would leave if they were fewer
        self._pool = 0  # of how many
        self._waiting: List[str] = []
        self._again: Optional[int] = None

    def __len__(self) -> int:
        """The number of nodes with the label."""
        return sum(map(self._is_selected, self._nodes))

    def replace(self, listed: Iterable[Node], now: int) -> bool:
        """Take a complete list; return whether that may change the servers."""
        there = {node.name: node for node in listed}
        counts = [self.remove(name) for name in [*self._nodes] if name not in there]
        counts += [self.change(node, now) for node in there.values()]
        self._left_out.intersection_update(there)
        self._last = {name: address for name, address in self._last.items() if name in there}
        return any(counts)

    def change(self, node: Node, now: int) -> bool:
        """Take a node that is new or has changed; return whether that may change the servers."""
        before = self._nodes.get(node.name)
        if before is None or before[:3] != node[:3]:
            self._offers[node.name] = addressing.offered(node, self._about)
        self._nodes[node.name] = node
        if node.ready:
            self._unready_since.pop(node.name, None)
            self._left_out.discard(node.name)
        else:
            self._unready_since.setdefault(node.name, now)
        return before != node and (self._is_selected(node.name) or self._is_server(node.name))

    def remove(self, name: str) -> bool:
        """Take the end of a node; return whether that may change the servers."""
        counts = name in self._nodes and (self._is_selected(name) or self._is_server(name))
        for about in (self._nodes, self._offers, self._unready_since, self._last):
            about.pop(name, None)
        self._left_out.discard(name)
        return counts

    def decide(self, now: int, answering: Answering = dict) -> Known:
        """Return the servers that there should be now.

        :param answering: what the balancer's checks say; called if that matters
        """
        nobodys = {*self._about.vips, *self._about.balancers}  # a user may name one that is a server
        servers = [server for server in self._known.servers if server.address not in nobodys]
        present = addressing.held(servers, self._offers, self._heirs())
        chosen = {*filter(self._is_selected, self._nodes), *present, *self._last}.intersection(self._nodes)
        unwanted = {name for name in chosen if self._is_unwanted(name)}
        troubled = unwanted.union(filter(self._unready_since.__contains__, chosen))
        joining = [name for name in sorted(chosen, key=lambda name: (name in troubled, name)) if name not in present]
        made = Assignment(self._offers, present, self._last, answering).made(
            [name for name in joining if name not in unwanted], troubled
        )
        pool = {*made.found, *unwanted}
        self._leaving, self._pool = troubled & pool, len(pool)
        if 2 * len(self._leaving) <= self._pool:
            self._leaving = set()
            self._left_out.update(filter(lambda name: self._is_out_of_time(name, now), chosen))
            gone = self._left_out | unwanted
        else:
            gone = self._left_out
        self._waiting = [name for name in made.waiting if name not in gone]
        self._again = now + ASK_AGAIN if self._waiting else None
        found = [Server(name, address) for name, address in sorted(made.found.items()) if name not in gone]
        self._remember(made.found, unwanted)
        self._of_balancer = self._of_balancer and not self._nodes
        out = tuple(Server(name, self._last.get(name, "")) for name in sorted(self._left_out))
        self._known = Known(tuple(found) or self._known.servers, out)
        return self._known

    def due(self) -> Optional[int]:
        """Return when to decide again although nothing has happened, None if that is never."""
        times = [self._again] if self._again is not None else []
        if not self._leaving:
            waiting = [since for name, since in self._unready_since.items() if self._is_to_leave(name)]
            times += [since + self._about.not_ready_for for since in waiting]
        return min(times) if times else None

    def problem(self) -> Optional[str]:
        """Return which servers stay although a list says that they do not, None if that is none."""
        label = self._about.label
        if not self._nodes:
            return words.all_stay("the list has no node.")
        if not any(server.name in self._nodes for server in self._known.servers):
            if not len(self):
                return words.all_stay(f"no node has the label {label}: label those that serve, or correct the label.")
            if all(name in self._left_out for name in self._nodes if self._is_selected(name)):
                return words.all_stay("no node is ready: see `kubectl get nodes`.")
            return words.all_stay("no node has an address that can be a server's.") if self._known.servers else None
        if self._leaving:
            staying = sorted(server.name for server in self._known.servers if server.name in self._leaving)
            return words.majority_stays(staying, len(self._leaving), self._pool) if staying else None
        return None

    def kept(self) -> List[Kept]:
        """Return the servers whose nodes are elsewhere, or are no servers, as the API has them."""
        found = [(server, self._why_kept(server)) for server in self._known.servers if server.name in self._nodes]
        return [Kept(server.name, server.address, why) for server, why in found if why]

    def without_address(self) -> List[str]:
        """Return the nodes that are no servers because they have no address of their own that fits."""
        servers = {server.name for server in self._known.servers}
        return sorted(
            name
            for name, node in self._nodes.items()
            if self._is_selected(name) and not self._is_unwanted(name) and name not in servers | self._left_out
        )

    def _why_kept(self, server: Server) -> str:
        name, (fit, own) = server.name, self._offers[server.name]
        if not self._is_selected(name):
            return words.without_label(self._about.label)
        if server.address not in own:
            return words.not_at_its_address(self._nodes[name].internal, fit, name in self._waiting)
        return ""

    # -- what is known of a node

    def _is_selected(self, name: str) -> bool:
        return self._selector.matches(self._nodes[name].labels)

    def _is_server(self, name: str) -> bool:
        return any(server.name == name for server in self._known.servers)

    def _is_unwanted(self, name: str) -> bool:
        """Whether the user has said that a node is to be no server."""
        return self._nodes[name].excluded or (self._relabelled and not self._is_selected(name))

    def _is_to_leave(self, name: str) -> bool:
        return name not in self._left_out and (self._is_selected(name) or self._is_server(name))

    def _is_out_of_time(self, name: str, now: int) -> bool:
        since = self._unready_since.get(name)
        return since is not None and now >= since + self._about.not_ready_for

    def _heirs(self) -> List[str]:
        """Return which nodes may be servers of another name: those with the label, the ready ones first."""
        every = [name for name in self._nodes if self._is_selected(name) or self._of_balancer]
        return sorted(every, key=lambda name: (not self._is_selected(name), name in self._unready_since, name))

    def _remember(self, found: Dict[str, str], unwanted: Set[str]) -> None:
        """Note where each node is a server; one that the user has taken off comes back by the rule."""
        self._last = {name: address for name, address in {**self._last, **found}.items() if name not in unwanted}
