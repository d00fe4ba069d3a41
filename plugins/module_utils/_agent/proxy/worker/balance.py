# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Load-balancing methods: which server gets the next connection. Pure; the caller reports changes of the members.

A member is a server with a ``name``, a ``weight`` above 0 and the number of its ``current`` sessions.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, Dict, Iterable, List, Tuple
from zlib import crc32

from ..settings import LEAST_CONNECTIONS, ROUND_ROBIN, SOURCE

# Strides are whole numbers, so that positions never drift: this is divided by weights.
STRIDE_UNIT = 1 << 40
MASK = (1 << 64) - 1
MAX_CLIENTS = 4096  # whose choice is remembered


class RoundRobin:
    """Each in turn, more often the greater its weight, and spread evenly (stride scheduling).

    Each member has the position of its next turn. The lowest one is chosen, and moves ahead by its stride.
    """

    def __init__(self) -> None:
        self._queue: List[Tuple[int, int, int, Any]] = []  # position, order, stride, member

    def change(self, members: Iterable[Any]) -> None:
        """Set the members. Those that stay keep their positions, so that frequent changes favour none."""
        now = self._queue[0][0] if self._queue else 0
        positions = {member.name: position for position, _order, _stride, member in self._queue}
        self._queue = []
        for order, member in enumerate(members):
            stride = int(STRIDE_UNIT / member.weight)  # a weight may be a fraction, during a slow start
            position = min(positions.get(member.name, now + stride // 2), now + stride)
            self._queue.append((position, order, stride, member))
        heapq.heapify(self._queue)

    def choose(self, _client: str) -> Any:
        position, order, stride, member = self._queue[0]
        heapq.heapreplace(self._queue, (position + stride, order, stride, member))
        return member


class LeastConnections:
    """The member with the fewest sessions for its weight; among equals, each in turn."""

    def __init__(self) -> None:
        self._turns = RoundRobin()
        self._members: List[Any] = []

    def change(self, members: Iterable[Any]) -> None:
        self._members = list(members)
        self._turns.change(self._members)

    def choose(self, client: str) -> Any:
        # The one whose turn it is wins unless another has fewer.
        chosen = self._turns.choose(client)
        fewest = chosen.current / chosen.weight
        for member in self._members:
            if member.current / member.weight < fewest:
                chosen, fewest = member, member.current / member.weight
        return chosen


class Source:
    """A client always gets the same server, on every balancer, as long as that server is available.

    Highest random weight (rendezvous hashing): each member draws a number for the client, from its name and the
    client's address alone, and the highest one wins. So a member that leaves moves only its own clients, and gets them
    back.
    """

    def __init__(self) -> None:
        self._members: List[Tuple[int, Any]] = []
        self._choices: Dict[str, Any] = {}

    def change(self, members: Iterable[Any]) -> None:
        self._members = [(crc32(member.name.encode()), member) for member in members]
        self._choices.clear()

    def choose(self, client: str) -> Any:
        chosen = self._choices.get(client)
        if chosen is None:
            chosen = self._draw(client)
            if len(self._choices) >= MAX_CLIENTS:
                self._choices.clear()
            self._choices[client] = chosen
        return chosen

    def _draw(self, client: str) -> Any:
        number = crc32(client.partition("%")[0].encode()) << 32  # a link-local address without its interface
        # -log(u)/weight is exponentially distributed: the lowest of them is a member's in proportion to its weight.
        return min(self._members, key=lambda known: -math.log(_uniform(number | known[0])) / known[1].weight)[1]


def _uniform(number: int) -> float:
    """Return a number above 0 and at most 1 that looks random: the finalizer of splitmix64.

    A checksum alone is not enough: those of two names differ by the same bits for every client.
    """
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & MASK
    return ((number ^ (number >> 31)) + 1) / (MASK + 1)


METHODS: Dict[str, Any] = {ROUND_ROBIN: RoundRobin, LEAST_CONNECTIONS: LeastConnections, SOURCE: Source}
