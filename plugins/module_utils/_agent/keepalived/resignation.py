# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The resignation for a keepalived that was killed.

A keepalived that is stopped advertises priority 0 and removes its addresses. One that was killed does neither: its
addresses stay, and the others wait for three intervals. systemd runs this after every end (ExecStopPost=). Addresses
that are still there show of which Virtual Routers keepalived was Active. This removes them first, so that no two hosts
have them, and then advertises priority 0. Where nothing is left over it sends nothing.
"""

from __future__ import annotations

import errno
from typing import Any, Iterable, List, NamedTuple, Sequence, Tuple

from ..net import netlink, sockets
from ..runtime.log import Log
from ..vrrp.core import packet
from . import conf, unread
from .senders import OpenSocket, Send, reason, senders


class Left(NamedTuple):
    """A Virtual Router of which keepalived was Active when it ended, and the addresses that are still there."""

    router: conf.Router
    addresses: Sequence[netlink.Address]


def left_by(
    routers: Iterable[conf.Router], links: Iterable[netlink.Link], addresses: Iterable[netlink.Address]
) -> List[Left]:
    """Return the Virtual Routers of which some addresses are on this host as keepalived adds them."""
    indexes = {link.name: link.index for link in links}
    there = {(each.index, each.address, each.prefix): each for each in addresses}
    found = []
    for router in routers:
        keys = [(indexes.get(each.interface), each.address, each.prefix) for each in router.held]
        left = [there[key] for key in keys if key in there]
        if left:
            found.append(Left(router, left))
    return found


def destinations(router: conf.Router) -> Tuple[str, ...]:
    return router.peers or (packet.GROUP6 if router.family == 6 else packet.GROUP,)


class Resignation:
    """Resigns for a keepalived, for all of its Virtual Routers at once."""

    def __init__(self, kernel: Any, open_socket: OpenSocket, log: Any) -> None:
        """
        :param kernel: a `netlink.Netlink`
        :param open_socket: `sockets.open_socket`
        """
        self._kernel, self._open_socket, self._log = kernel, open_socket, log

    def execute(self, routers: Iterable[conf.Router]) -> None:
        """Remove what is left over, then resign. The sockets are ready before the first address goes."""
        links, addresses = self._kernel.links(), self._kernel.addresses()
        ready = [(left, self._senders(left, links, addresses)) for left in left_by(routers, links, addresses)]
        gone = [(left, calls) for left, calls in ready if self._remove(left)]
        for left, calls in gone:
            self._resign(left, calls)

    def _senders(
        self, left: Left, links: Sequence[netlink.Link], addresses: Sequence[netlink.Address]
    ) -> List[Tuple[str, Send]]:
        """Return a call for each destination that sends the resignation."""
        router = left.router
        try:
            return senders(router, 0, destinations(router), (links, addresses), self._open_socket)
        except (OSError, ValueError) as error:
            self._log.warning(f"{router.name}: priority 0 cannot be sent: {reason(error)}.")
            return []

    def _remove(self, left: Left) -> bool:
        """Return whether none of the addresses is left. Where one stays, the others must not take them over yet."""
        for each in left.addresses:
            text = f"{each.address}/{each.prefix}"
            try:
                self._kernel.delete(each.index, text)
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:  # it is gone already
                    self._log.warning(f"{left.router.name}: {text} cannot be removed: {reason(error)}.")
                    return False
        return True

    def _resign(self, left: Left, calls: Sequence[Tuple[str, Send]]) -> None:
        reached = []
        for to, send in calls:
            try:
                send()
                reached.append(to)
            except OSError as error:
                self._log.warning(f"{left.router.name}: priority 0 cannot be sent to {to}: {reason(error)}.")
        removed = ", ".join(f"{each.address}/{each.prefix}" for each in left.addresses)
        told = f", and priority 0 was sent to {', '.join(reached)}" if reached else ""
        self._log.info(f"{left.router.name}: keepalived had left {removed}: removed{told}.")


def main(path: str) -> int:
    """Resign for the keepalived with this configuration; return the exit code."""
    log = Log()
    try:
        with open(path, encoding="utf-8", errors=conf.UNDECODED) as file:
            text = file.read()
        for each in unread.unread(text):
            log.warning(f"{path} has {each}.")
        Resignation(netlink.Netlink(), sockets.open_socket, log).execute(conf.routers(text))
    except OSError as error:
        log.warning(f"{error.filename or 'The network'} cannot be read: {reason(error)}.")
        return 1
    return 0
