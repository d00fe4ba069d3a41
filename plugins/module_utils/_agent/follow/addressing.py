# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""At which address each node is a server. Pure.

A server keeps its address while the API server says that its node still has it. If the API server says something else,
the server moves only if the balancer's check does not find it there any more, or if a node that joins or moves has its
address: what the API server offers instead may be a VIP that nobody knows of. If it offers nothing of use, the server
stays.
"""

from __future__ import annotations

from typing import Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

from . import nodes
from .nodes import Node
from .settings import Nodes, Server

# Whether the balancer's check finds a server at an address; nothing of one that it does not check. None if the balancer
# cannot be asked.
Answering = Callable[[], Optional[Mapping[str, bool]]]


class Offered(NamedTuple):
    """The addresses of a node, as the API server has them."""

    fit: Sequence[str]  # at which it may be a server, the best first
    own: Sequence[str]  # all of them


class Addresses(NamedTuple):
    """The result.

    :ivar found: by node; a node without an address is not in it
    :ivar waiting: the nodes that move once their present address does not answer
    """

    found: Dict[str, str]
    waiting: List[str]


def offered(node: Node, about: Nodes) -> Offered:
    return Offered(nodes.candidates(node, about), nodes.own(node, about))


def held(servers: Sequence[Server], offers: Mapping[str, Offered], heirs: Sequence[str]) -> Dict[str, str]:
    """Return the address of the server that each node is, by node.

    A server belongs to the node of its name, or to one that has its address: the node was renamed, or the inventory has
    another name for it.

    :param heirs: the nodes that may be a server of another name, the best first
    """
    found: Dict[str, str] = {}
    for server in servers:
        if server.name in offers and server.address not in found.values():
            found[server.name] = server.address
    for server in servers:
        if server.name not in offers and server.address not in found.values():
            heir = next((name for name in heirs if name not in found and server.address in offers[name].own), None)
            if heir is not None:
                found[heir] = server.address
    return found


class Assignment:
    """One decision. Mutable while it is made."""

    def __init__(
        self, offers: Mapping[str, Offered], present: Mapping[str, str], last: Mapping[str, str], answering: Answering
    ) -> None:
        """
        :param offers: of all nodes
        :param present: as `held` returns it
        :param last: at which nodes were servers before, those too that are none now
        """
        self._offers, self._present, self._last, self._answering = offers, present, last, answering
        self._found: Dict[str, str] = {}
        self._waiting: List[str] = []

    def made(self, joining: Sequence[str], troubled: Collection[str]) -> Addresses:
        """Return the addresses of the nodes that are servers, and of those that join.

        :param joining: the best first
        :param troubled: the nodes that may have to leave, whose address a node in good order takes over
        """
        elsewhere = [name for name in sorted(self._present) if self._is_elsewhere(name)]
        self._found = {name: address for name, address in self._present.items() if name not in elsewhere}
        new = [name for name in joining if name not in self._last and name not in troubled]
        self._move(self._released(elsewhere, new))
        for name in joining:
            self._join(name, set() if name in troubled else {each for each in troubled if each in self._found})
        return Addresses(self._found, self._waiting)

    def _is_elsewhere(self, name: str) -> bool:
        offer = self._offers[name]
        return self._present[name] not in offer.own and bool(offer.fit)

    def _released(self, elsewhere: List[str], new: Sequence[str]) -> List[str]:
        """Return who moves: whose address does not answer, or is that of a node that joins or moves itself.

        Where all answer, nodes that have changed their addresses with one another stay: the addresses are the same.
        """
        answers = self._answering() if elsewhere else {}
        dead = [] if answers is None else [name for name in elsewhere if not answers.get(self._present[name])]
        moving, claiming = list(dead), [*new, *dead]
        while claiming:
            claimed = {each for name in claiming for each in self._offers[name].own}
            claiming = [name for name in elsewhere if name not in moving and self._present[name] in claimed]
            moving += claiming
        self._waiting = [name for name in elsewhere if name not in moving]
        self._found.update({name: self._present[name] for name in self._waiting})
        return moving

    def _move(self, moving: List[str]) -> None:
        """Move servers to addresses that no other one has; one that finds none stays where it is."""
        while True:
            taken, chosen = set(self._found.values()), {}
            for name in moving:
                free = [each for each in self._offers[name].fit if each not in taken]
                if not free:
                    self._found[name] = self._present[name]
                    moving.remove(name)
                    break
                chosen[name] = free[0]
                taken.add(free[0])
            else:
                self._found.update(chosen)
                return

    def _join(self, name: str, yielding: Set[str]) -> None:
        """Find an address: where the node was a server before, from where it may move, or where it may be one."""
        offer, last = self._offers[name], self._last.get(name, "")
        wished = [each for each in (last, *offer.fit) if each]
        holders = {address: holder for holder, address in self._found.items()}
        free = [each for each in wished if each not in holders]
        taken_over = [each for each in wished if holders.get(each) in yielding]
        if free:
            self._found[name] = free[0]
            if free[0] not in offer.own and offer.fit:
                self._waiting.append(name)
        elif taken_over:
            self._found[name] = self._found.pop(holders[taken_over[0]])
