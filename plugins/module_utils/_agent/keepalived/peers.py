# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tells the peers of a Virtual Router that keepalived has yielded, where its own last Advertisement is lost.

The winner announces its addresses again when it hears that Advertisement. But while the link was cut the kernel asked
for the winner's MAC in vain, once a second. After the third time it discards what waits for the answer, and asks no
more: the winner hears nothing, and clients go on sending to this host. So keepalived runs this when it becomes Backup
(notify_backup). Where the kernel knows the MACs, it does nothing.

An interface that is up again makes it Backup, too. Then nobody may hold the addresses, and nothing is sent. But the
kernel may be asking for the balancer's servers and their clients, and this asks once more: the kernel's own next
question may come a second later.
"""

from __future__ import annotations

import select
import socket
import subprocess
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Set

from ..net import netlink, sockets
from ..net.neighbours import NeighbourProber
from ..runtime.log import Log
from . import conf
from .senders import reason, senders

TRIES, WAIT = 3, 0.2  # seconds until an answer is taken to be lost
LOWEST = 1  # of the priorities: nobody yields to it, and 0 would say that this router resigns
MAX_QUESTIONS = 64  # at once, for others than the peers
ASKING, UNANSWERED = "INCOMPLETE", "FAILED"  # states of a neighbour: the kernel asks for it, or has asked in vain
Wait = Callable[[Any, float], bool]  # whether there is something to read within so many seconds


class Unknown(NamedTuple):
    """The neighbours whose MACs the kernel does not know."""

    peers: List[str]  # those that it asks for, and those for which it has asked in vain
    others: List[str]  # those that it asks for


def unknown(neighbours: str, router: conf.Router) -> Unknown:
    """Return the neighbours of a router's family whose MACs the kernel does not know.

    :param neighbours: what ``ip -oneline neighbour show`` prints
    """
    rows = [words for words in map(str.split, neighbours.splitlines()) if words]
    states = {words[0]: words[-1] for words in rows if (":" in words[0]) == (router.family == 6)}
    peers = set(map(_written_once, router.peers))
    return Unknown(
        [address for address, state in states.items() if address in peers and state in (ASKING, UNANSWERED)],
        [address for address, state in states.items() if address not in peers and state == ASKING],
    )


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
) -> Dict[str, str]:
    """Ask for the MACs of addresses, and return those that answer. The kernel takes the answers as ones to itself.

    :param prober: a `NeighbourProber` of the interface
    """
    missing: Set[str] = set(addresses)
    found: Dict[str, str] = {}
    for _try in range(tries):
        end = now() + WAIT  # also where others speak all the time
        for address in sorted(missing):
            prober.probe(address)
        while missing and (left := end - now()) > 0 and wait(prober, left):
            found.update((address, mac) for address, mac in prober.replies() if address in missing)
            missing -= {*found}
    return found


def tell(router: conf.Router) -> None:
    """Send an Advertisement to the holder of the addresses, if the kernel has asked for it in vain.

    No other peer gets one: without preemption a Backup takes it for one of an Active router, and waits anew.
    """
    command = ["ip", "-oneline", "neighbour", "show", "dev", router.interface]
    lost = unknown(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout, router)
    if not any(lost):
        return
    prober = NeighbourProber(router.interface, router.family)
    for address in lost.others[:MAX_QUESTIONS]:
        prober.probe(address)
    virtual = router.advertised[0]
    found = find(prober, [*lost.peers, virtual] if lost.peers else [])
    holder = [peer for peer in lost.peers if virtual in found and found.get(peer) == found[virtual]]
    kernel = netlink.Netlink()
    there = kernel.links(), kernel.addresses()
    for _to, send in senders(router, LOWEST, holder, there, sockets.open_socket):
        send()


def main(path: str, name: str) -> int:
    """Tell the peers of an instance of the keepalived with this configuration; return the exit code."""
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
