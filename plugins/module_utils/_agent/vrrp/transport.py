# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's sockets: one for each interface and family, shared by all Virtual Routers there."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from ..net.ip import Datagram
from ..runtime.loop import MILLION, Loop
from . import links, validation
from .core import machine, packet
from .router import Router
from .unanswered import Unanswered

BATCH = 64  # messages read in one callback, some 2 ms, before timers have their turn
BACKLOG = 2000  # messages read before Active_Down_Timer is taken to have expired
FAULT_EXPIRY = 60 * MILLION  # a fault is over when its kind of message has not arrived for so long
ADDRESSES = "addresses"  # a reason to log, though not to discard
MAX_FAULTS = 256  # kinds of messages that are remembered: what differs in a message may be forged
Key = Tuple[str, int]


class InterfaceSocket:
    """One socket, and the Virtual Routers that it serves, by VRID."""

    def __init__(self, interface: str, family: int) -> None:
        self.interface, self.family = interface, family
        self.routers: Dict[int, Router] = {}
        self.port: Any = None
        self.opened_for: Optional[Tuple[int, bool]] = None  # the interface's index, and whether it joined the group
        self.name = f"{interface}, IPv{family}"

    @property
    def multicast(self) -> bool:
        return any(router.instance.multicast for router in self.routers.values())


def _send_nothing() -> None:
    pass


class Transport:
    """All sockets; they follow their interfaces, which may vanish and be created again."""

    def __init__(
        self,
        loop: Loop,
        network: Any,
        known: links.Links,
        log: Any,
        on_received: Callable[[Router, machine.Received, int], None],
    ) -> None:
        self.loop, self.network, self.links, self.log, self._on_received = loop, network, known, log, on_received
        self.unanswered = Unanswered(loop, network)
        self._sockets: Dict[Key, InterfaceSocket] = {}
        self._faults: Dict[Tuple[str, str], int] = {}  # when each kind of message last arrived
        self._expiring = False

    def listen_for(self, routers: Iterable[Router]) -> None:
        """Keep the sockets that these routers need, and no others."""
        by_key: Dict[Key, Dict[int, Router]] = {}
        for router in routers:
            by_key.setdefault(router.socket_key, {})[router.instance.vrid] = router
        for key in [key for key in self._sockets if key not in by_key]:
            self._close(self._sockets.pop(key))
        for key, members in by_key.items():
            sock = self._sockets.setdefault(key, InterfaceSocket(*key))
            sock.routers = members
            if sock.port:
                sock.port.listen_for(members)

    def follow(self) -> bool:
        """Open and close sockets as interfaces come and go; return False if one could not be opened."""
        for sock in self._sockets.values():
            link = self.links.named(sock.interface)
            target = (link.index, sock.multicast) if link else None
            if target != sock.opened_for:
                self._close(sock)
                if target:
                    self._open(sock, *target)
        return all(sock.port or not self.links.named(sock.interface) for sock in self._sockets.values())

    def _open(self, sock: InterfaceSocket, index: int, multicast: bool) -> None:
        key = f"open {sock.name}"
        try:
            sock.port = self.network.open_socket(sock.interface, index, sock.family, multicast)
            sock.port.listen_for(sock.routers)
        except OSError as error:
            self.log.fault(key, f"{sock.name}: no socket for VRRP: {error.strerror}")
            return
        self.log.cured(key, f"{sock.name}: there is a socket for VRRP")
        sock.opened_for = (index, multicast)
        self.loop.watch(sock.port.fileno(), lambda _events: self._read(sock, BATCH))

    def _close(self, sock: InterfaceSocket) -> None:
        if sock.port:
            self.loop.forget(sock.port.fileno())
            sock.port.close()
        sock.port = sock.opened_for = None

    def close(self) -> None:
        for sock in self._sockets.values():
            self._close(sock)

    def is_open(self, router: Router) -> bool:
        sock = self._sockets.get(router.socket_key)
        return bool(sock and sock.port)

    def sending(self, router: Router, priority: int) -> Callable[[], None]:
        """Return a call that sends an Advertisement to every peer; a failure for one does not stop the others.

        Nothing is sent without a link. The kernel would look for the peer's MAC there, in vain and for three seconds.
        Advertisements of a link that is back earlier would wait for that.
        """
        if not router.has_link:
            return _send_nothing
        port = self._egress_socket(router)
        return partial(self._send, router, port, router.senders(port, priority) if port else ())

    def find(self, router: Router, winner: str) -> None:
        """Find the MAC of the router that another one has yielded to, which has to hear the last Advertisement.

        While the link was cut the kernel asked for that MAC in vain, once a second. If its third question was lost as
        well, it discards what waits for the answer, and asks no more.
        """
        link, source = router.egress.link, router.egress.source
        if link and source and not router.instance.multicast:
            with contextlib.suppress(OSError):
                self.network.ask(link, source, winner)

    def _send(self, router: Router, port: Any, senders: Iterable[Tuple[str, Callable[[], Any]]]) -> None:
        name, reached = router.name, False
        failure = "" if port else ": there is no socket"
        for destination, send in senders:
            try:
                send()
                reached = True
            except OSError as error:
                failure = f" to {destination}: {error.strerror}"
        router.sent += reached
        if failure:
            self.log.fault(f"send {name}", f"{name}: no Advertisement can be sent{failure}")
        else:
            self.log.cured(f"send {name}", f"{name}: Advertisements can be sent")

    def _egress_socket(self, router: Router) -> Any:
        """Return the socket that a router can send through now, if there is one."""
        sock = self._sockets.get(router.socket_key)
        return sock.port if sock and router.egress.source else None

    def catch_up(self, router: Router) -> None:
        """Read what has arrived for a router before its timer is taken to have expired."""
        sock = self._sockets.get(router.socket_key)
        if sock:
            self._read(sock, BACKLOG)

    def _read(self, sock: InterfaceSocket, limit: int) -> None:
        for _count in range(limit):
            datagram = sock.port.receive() if sock.port else None
            if datagram is None:
                return
            self._receive(sock, datagram, self.loop.now() - datagram.age)

    def _receive(self, sock: InterfaceSocket, datagram: Datagram, arrived: int) -> None:
        router = sock.routers.get(validation.vrid_of(datagram.message))
        if router is None:  # it arrived before the filter was set
            return
        received = validation.validate(datagram, router.ours)
        if isinstance(received, packet.Discard):
            self._discard(router, datagram.source, received)
        else:
            self._compare(router, received, datagram.source)
            self._on_received(router, router.record(received, datagram.source), arrived)

    def _discard(self, router: Router, source: str, why: packet.Discard) -> None:
        router.discard(why.reason)
        self._log_once((router.name, why.reason), f"a message from {source} is discarded: {why.detail}")

    def _log_once(self, key: Tuple[str, str], text: str) -> None:
        """Log a kind of message once, whichever router sends it: a flood of messages must not flood the log."""
        if key not in self._faults and len(self._faults) >= MAX_FAULTS:
            return
        if key not in self._faults:
            self.log.fault(" ".join(key), f"{key[0]}: {text}")
        self._faults[key] = self.loop.now()
        if not self._expiring:
            self._expiring = True
            self.loop.after(FAULT_EXPIRY, self._expire_faults)

    def _expire_faults(self) -> None:
        """Clear the faults whose messages have stopped."""
        over = self.loop.now() - FAULT_EXPIRY
        for key in [key for key, last in self._faults.items() if last <= over]:
            del self._faults[key]
            self.log.cured(" ".join(key), f"{key[0]}: such messages have stopped ({key[1]})")
        self._expiring = bool(self._faults)
        if self._expiring:
            self.loop.after(FAULT_EXPIRY // 4, self._expire_faults)

    def _compare(self, router: Router, received: packet.Advertisement, source: str) -> None:
        """Log another list of addresses, or another interval of version 3: neither is a reason to discard (RFC 9568
        section 7.1)."""
        ours, theirs = router.advertisement, received.addresses
        if received.priority and theirs != ours.addresses and sorted(theirs) != sorted(ours.addresses):
            self._log_once((router.name, ADDRESSES), f"{source} has other addresses: {', '.join(theirs)}")
        if received.priority and received.interval != ours.interval:  # version 2 has discarded it before
            interval = f"an interval of {received.interval / MILLION:g} s"
            adopted = f"{source} has {interval}, which a Backup adopts; ours is {ours.interval / MILLION:g} s"
            self._log_once((router.name, interval), adopted)
