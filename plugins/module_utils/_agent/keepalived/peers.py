# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tells the winner that keepalived has yielded, where its own last Advertisement may be lost.

The winner announces its addresses again when it hears that Advertisement. But while the link was cut the kernel asked
for the winner's MAC in vain, once a second. After the third time it discards what waits for the answer, and asks no
more: the winner hears nothing, and clients go on sending to this host. So keepalived runs this when it becomes Backup
(notify_backup). Whether the kernel knows the MAC by then says nothing: the winner may have asked for ours meanwhile.
One that is told twice announces its addresses twice.

An interface that is up again makes it Backup, too. Then nobody may hold the addresses, and nothing is sent. But the
kernel may be asking for the balancer's servers and their clients, and this asks once more: the kernel's own next
question may come a second later.
"""

from __future__ import annotations

import functools
import select
import socket
import subprocess
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

from ..net import netlink, sockets
from ..net.neighbours import NeighbourProber
from ..runtime.log import Log
from . import conf
from .senders import LOWEST, reason, senders

TRIES, WAIT = 3, 0.2  # seconds until an answer is taken to be lost
MAX_QUESTIONS = 64  # at once, for others than the peers
ASKING = "INCOMPLETE"  # the state of a neighbour while the kernel asks for it
Macs = Dict[str, str]  # by address
Wait = Callable[[Any, float], bool]  # whether there is something to read within so many seconds


def asked_for(neighbours: str, family: int) -> List[str]:
    """Return the neighbours of a family whose MACs the kernel asks for.

    :param neighbours: what ``ip -oneline neighbour show`` prints
    """
    rows = [words for words in map(str.split, neighbours.splitlines()) if words]
    return [words[0] for words in rows if words[-1] == ASKING and (":" in words[0]) == (family == 6)]


def _written_once(address: str) -> str:
    """Return an address as the kernel writes it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, address))


def readable(prober: Any, seconds: float) -> bool:
    return bool(select.select([prober], [], [], seconds)[0])


def find(
    prober: Any,
    addresses: Iterable[str],
    wait: Wait = readable,
    tries: int = TRIES,
    now: Callable[[], float] = time.monotonic,
    enough: Callable[[Macs], Any] = lambda _found: False,
) -> Macs:
    """Ask for the MACs of addresses, and return those that answer. The kernel takes the answers as ones to itself.

    :param prober: a `NeighbourProber` of the interface
    :param enough: says of the answers so far whether no other one matters
    """
    missing: Set[str] = set(addresses)
    found: Macs = {}
    for _try in range(tries):
        end = now() + WAIT  # also where others speak all the time
        for address in sorted(missing):
            prober.probe(address)
        left = WAIT
        while missing and left > 0:
            left = end - now()  # what arrived while this process stood still is read as well
            if not wait(prober, max(0.0, left)):
                break
            found.update((address, mac) for address, mac in prober.replies() if address in missing)
            if enough(found):
                return found
            missing -= found.keys()
    return found


def holder_of(virtual: str, found: Macs) -> Optional[str]:
    """Return the peer that holds a virtual address: its own address has the same MAC."""
    peers = (address for address, mac in found.items() if address != virtual and mac == found.get(virtual))
    return next(peers, None)


def tell(router: conf.Router) -> None:
    """Send an Advertisement to the peer that holds the addresses, if one does.

    No other peer gets one: without preemption a Backup takes it for one of an Active router, and waits anew. Where the
    addresses are on another link than the peers, no MAC tells which of several it is.
    """
    command = ["ip", "-oneline", "neighbour", "show", "dev", router.held[0].interface]
    neighbours = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    carrier = router.held[0].interface
    prober = NeighbourProber(carrier, router.family)
    virtual, *peers = map(_written_once, [router.advertised[0], *router.peers])
    others = [address for address in asked_for(neighbours, router.family) if address not in peers]
    for address in others[:MAX_QUESTIONS]:
        prober.probe(address)
    if carrier == router.interface:
        of_virtual = functools.partial(holder_of, virtual)
        holder = of_virtual(find(prober, [virtual, *peers], enough=of_virtual))
    else:
        holder = peers[0] if len(peers) == 1 and find(prober, [virtual]) else None
    kernel = netlink.Netlink()
    there = kernel.links(), kernel.addresses()
    for _to, send in senders(router, LOWEST, [holder] if holder else [], there, sockets.open_socket):
        send()


def main(path: str, name: str) -> int:
    """Tell the holder of an instance of the keepalived with this configuration; return the exit code."""
    log = Log()
    try:
        with open(path, encoding="utf-8", errors=conf.UNDECODED) as file:
            routers = [router for router in conf.routers(file.read()) if router.name == name]
        for router in routers:
            tell(router)
    except (OSError, ValueError) as error:
        log.warning(f"{name}: its peers cannot be told that it has yielded: {reason(error)}.")
        return 1
    return 0
