# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sockets that the proxy listens on: opened once, handed from one generation of workers to the next.

A reload first prepares the sockets of the new configuration, which may fail and then changes nothing, and then keeps
them.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Set, Tuple

from ..settings import ANY, Place

BACKLOG = 65535  # the kernel takes as much of it as net.core.somaxconn allows
IP_FREEBIND, IPV6_FREEBIND = 15, 78  # linux/in.h, linux/in6.h


class Refused(Exception):
    """An address cannot be listened on; ``reasons`` are sentences."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(" ".join(reasons))
        self.reasons = list(reasons)


Sockets = Dict[Place, socket.socket]


class Listeners:
    """All listening sockets."""

    def __init__(self, inherited: Sockets) -> None:
        self._sockets = inherited
        self._dropped: Set[Place] = set()  # old workers may still have them

    def items(self) -> List[Tuple[Place, socket.socket]]:
        return list(self._sockets.items())

    def prepare(self, wanted: Mapping[Place, str]) -> Sockets:
        """Return the wanted sockets: those that are open, and those that are opened now.

        With '*' comes each open socket of an address that it covers: the kernel gives that one the clients of its
        address for as long as it is open, so closing it would reset those that arrive at this moment.

        :param wanted: places, each with what it is for
        :raises Refused: if one of them cannot be opened; then none is
        """
        found: Sockets = {}
        reasons = []
        for place, purpose in wanted.items():
            try:
                found[place] = self._sockets.get(place) or self._open(place)
            except OSError as fault:
                reasons.append(f"{purpose}: {place} {_why(fault, place)}")
        if reasons:
            self.discard(found)
            raise Refused(reasons)
        return {**self._covered_by(wanted), **found}

    def _covered_by(self, wanted: Iterable[Place]) -> Sockets:
        return {place: each for wish in wanted for place, each in sockets_of(wish, self._sockets)}

    def keep(self, prepared: Sockets) -> None:
        """Use the prepared sockets, and close those that are no longer wanted.

        Old workers close theirs a moment later. Until then the port may be shared, as the next reload may want it back.
        """
        before, self._sockets = self._sockets, prepared
        dropped = {place: each for place, each in before.items() if place not in prepared}
        self._dropped = {*self._dropped, *dropped} - set(prepared)
        _let_share(dropped.values(), True)
        _close(dropped.values())

    def discard(self, prepared: Sockets) -> None:
        """Close what was prepared and is not in use."""
        _close(each for place, each in prepared.items() if place not in self._sockets)

    def forget_dropped(self) -> None:
        """Call when no old worker is left: the places that are not ours any more are shared with no other program."""
        self._dropped.clear()

    def close(self) -> None:
        self.keep({})

    def _open(self, place: Place) -> socket.socket:
        own = [each for other, each in self._sockets.items() if other.overlaps(place)]
        shared = bool(own) or any(other.overlaps(place) for other in self._dropped)
        return _open(place, own, shared)


def sockets_of(place: Place, sockets: Sockets) -> List[Tuple[Place, socket.socket]]:
    """Return the sockets at which clients of a place arrive."""
    return [(other, each) for other, each in sockets.items() if place.covers(other)]


def _open(place: Place, own: Sequence[socket.socket], shared: bool) -> socket.socket:
    """Listen. The address need not be on this host yet: another member may hold the VIP.

    :param own: open sockets of ours that overlap with this place
    :param shared: whether those, or sockets that old workers still have, may share its port
    """
    server = socket.socket(place.family, socket.SOCK_STREAM)
    try:
        server.setblocking(False)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited by accepted connections
        if place.family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            server.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        else:
            server.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        with _shared([server, *own] if shared else []):
            server.bind(("" if place.address == ANY else place.address, place.port))
            server.listen(BACKLOG)
    except OSError:
        server.close()
        raise
    return server


@contextlib.contextmanager
def _shared(sockets: Sequence[socket.socket]) -> Iterator[None]:
    """Let our own sockets share a port for a moment, as when '*' becomes an address and the old one still serves.

    Not for good: another proxy started by this user by mistake would get a part of the connections.
    """
    _let_share(sockets, True)
    try:
        yield
    finally:
        _let_share(sockets, False)


def _let_share(sockets: Iterable[socket.socket], may: bool) -> None:
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, may)


def _why(fault: OSError, place: Place) -> str:
    if fault.errno == errno.EADDRINUSE:
        return "is in use by another program: stop that one, or choose another address or port."
    if fault.errno in (errno.EACCES, errno.EPERM):
        return f"may not be listened on: {place.port} is a port for root, or for CAP_NET_BIND_SERVICE."
    return f"cannot be listened on: {fault.strerror}."


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()
