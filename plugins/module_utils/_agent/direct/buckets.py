# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which server owns which bucket of a service's connections. Pure.

Weighted rendezvous hashing: each server draws a score for each bucket, and the highest one owns it. A server that is
added takes buckets from the others, and they take them back when it goes; no bucket moves between servers that stay.
Maglev's table is more even with fewer buckets, but it does move some of those.

The second server of a bucket is the next one of its ranking. It owned the bucket before a server was added, drained,
taken back or given more weight, whichever that was, as long as no other one drains. So there is no past to keep or to
exchange: every balancer and every server computes the same table from the same list. Less weight is the exception: what
that moves may have had a third owner.
"""

from __future__ import annotations

import hashlib
import math
import sys
from array import array
from functools import lru_cache
from typing import Collection, List, NamedTuple, Sequence, Tuple

FEWEST, MOST = 4096, 65_536
MOST_IN_ALL = 1 << 20  # of all services: nft then needs 800 MB
PER_SERVER = 512  # by chance a server's share then differs by some 4 % from its due
MOST_SERVERS = MOST // PER_SERVER
RANGE = 1 << 32


class Server(NamedTuple):
    """A server of a service.

    :ivar address: by which the table knows it: one that is renamed stays the same
    :ivar weight: its part of the connections, in comparison with the others; at least 1
    :ivar drains: it owns no bucket, and still gets what belongs to connections that it has
    """

    address: str
    weight: int = 1
    drains: bool = False


class Bucket(NamedTuple):
    """The addresses of a bucket's servers.

    :ivar owner: who gets new connections
    :ivar second: who may have older ones; '' if there is nobody else
    """

    owner: str
    second: str

    def other(self, own: Collection[str]) -> str:
        """Return to whom a server with these addresses hands on: to the owner, and as that itself to the second."""
        return self.second if self.owner in own else self.owner

    def answering(self, asked: str) -> str:
        """Return who gets in the end what a server is asked and nobody has: see ``rulesets``."""
        return asked if asked in self else self.second


def size(count: int) -> int:
    """Return how many buckets a service that begins with so many servers has: a power of two.

    It keeps them when servers come and go: with another number half of the connections would be elsewhere, and no
    second server would know them. With more servers than that the shares only become less even.
    """
    return min(MOST, max(FEWEST, 1 << (count * PER_SERVER - 1).bit_length()))


def table(servers: Sequence[Server], count: int) -> List[Bucket]:
    """Return so many buckets, whatever the order of the servers; none if no server may get connections."""
    listed = _in_order(servers)
    if all(server.drains for server in listed):
        return []
    addresses = [*(server.address for server in listed), ""]
    places = list(zip(*_two_best(listed, count)))
    named = {(owner, second): Bucket(addresses[owner], addresses[second]) for owner, second in set(places)}
    return [named[each] for each in places]


def bucket(servers: Sequence[Server], count: int, number: int) -> Bucket:
    """Return one of the buckets of a table; at least one of the servers does not drain."""
    listed = _in_order(servers)
    scores = _scores(listed, count)
    owner, *others = sorted(range(len(listed)), key=lambda place: (listed[place].drains, -scores[place][number]))
    second = max(others, key=lambda place: scores[place][number], default=None)
    return Bucket(listed[owner].address, "" if second is None else listed[second].address)


def _in_order(servers: Sequence[Server]) -> Tuple[Server, ...]:
    """Return the servers in the order that all hosts have: those that drain last. Of equal scores the first counts."""
    return tuple(sorted(servers, key=lambda server: (server.drains, server.address)))


@lru_cache(maxsize=256)  # most pools stay as they are when one changes
def _two_best(listed: Tuple[Server, ...], count: int) -> Tuple[Sequence[int], Sequence[int]]:
    """Return the places of each bucket's owner and of its second server; -1 for nobody.

    Those that drain own nothing, and are second where they have the highest score of the others.
    """
    owners, seconds = array("b"), array("b", [-1] * count if len(listed) == 1 else [])
    owning = sum(not server.drains for server in listed)
    for row in zip(*_scores(listed, count)):
        owner = row.index(max(row[:owning]))
        owners.append(owner)
        others = row[:owner] + row[owner + 1 :]
        if others:
            second = others.index(max(others))
            seconds.append(second + (second >= owner))
    return owners, seconds


def _scores(listed: Sequence[Server], count: int) -> List[Sequence[float]]:
    """Return each server's score for each bucket. The highest of all is each one's as often as its weight says."""
    draws = [_draws(server.address, count) for server in listed]
    if len({server.weight for server in listed}) == 1:
        return [*draws]  # whose order is that of the scores
    return [[math.log((each + 1) / RANGE) / server.weight for each in drawn] for server, drawn in zip(listed, draws)]


@lru_cache(maxsize=256)
def _draws(address: str, count: int) -> Sequence[int]:
    draws = array("I", hashlib.shake_128(address.encode()).digest(4 * count))
    if sys.byteorder == "big":
        draws.byteswap()
    return draws
