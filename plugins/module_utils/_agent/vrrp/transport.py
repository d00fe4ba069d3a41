# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's sockets: one for each interface and family, shared by all Virtual Routers there."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Tuple

from ..net.ip import Datagram
from ..runtime.loop import MILLION, Loop
from . import links, validation
from .core import machine, packet
from .prepared import NONE, PreparedCall, PreparedCalls
from .router import Router

BATCH = 64  # messages that are read before timers have their turn again: some 2 ms
BACKLOG = 2000  # messages that may be waiting when a Backup is about to believe in silence
QUIET = 60 * MILLION  # without a message of a kind its fault counts as gone
ADDRESSES = "addresses"  # complained about like what is discarded
Key = Tuple[str, int]


class InterfaceSocket:
    """One socket, and the Virtual Routers that it is for, by VRID."""

    def __init__(self, interface: str, family: int) -> None:
        self.interface, self.family = interface, family
        self.routers: Dict[int, Router] = {}
        self.port: Any = None
        self.opened_for: Optional[Tuple[int, bool]] = None  # the interface's index, and whether it is in the group
        self.discarded: Dict[str, int] = {}
        self.name = f"{interface}, IPv{family}"

    @property
    def multicast(self) -> bool:
        return any(router.instance.multicast for router in self.routers.values())

    def discard(self, reason: str) -> None:
        self.discarded[reason] = self.discarded.get(reason, 0) + 1


class Transport:
    """All sockets; they follow their interfaces, which may vanish and come back as others."""

    def __init__(
        self, loop: Loop, network: Any, known: links.Links, log: Any, tell: Callable[[Router, machine.Event, int], None]
    ) -> None:
        self.loop, self.network, self.links, self.log, self.tell = loop, network, known, log, tell
        self._ears: Dict[Key, InterfaceSocket] = {}
        self._faults: Dict[Tuple[str, str], int] = {}  # when a kind of message last came
        self._sweeping = False

    def __iter__(self) -> Iterator[InterfaceSocket]:
        return iter(self._ears.values())

    def listen_for(self, routers: Iterable[Router]) -> None:
        """Have a socket for each of these, and no other."""
        by_key: Dict[Key, Dict[int, Router]] = {}
        for router in routers:
            by_key.setdefault(router.port, {})[router.instance.vrid] = router
        for key in [key for key in self._ears if key not in by_key]:
            self._close(self._ears.pop(key))
        for key, members in by_key.items():
            self._ears.setdefault(key, InterfaceSocket(*key)).routers = members

    def follow(self) -> bool:
        """Open what has an interface now, close what has none any more; return False if something could not be had."""
        for ear in self._ears.values():
            link = self.links.named(ear.interface)
            wanted = (link.index, ear.multicast) if link else None
            if wanted != ear.opened_for:
                self._close(ear)
                if wanted:
                    self._open(ear, *wanted)
        return all(ear.port or not self.links.named(ear.interface) for ear in self._ears.values())

    def _open(self, ear: InterfaceSocket, index: int, multicast: bool) -> None:
        key = f"open {ear.name}"
        try:
            ear.port = self.network.open_port(ear.interface, index, ear.family, multicast)
        except OSError as error:
            self.log.fault(key, f"{ear.name}: no socket for VRRP: {error.strerror}")
            return
        self.log.cured(key, f"{ear.name}: there is a socket for VRRP")
        ear.opened_for = (index, multicast)
        self.loop.watch(ear.port.fileno(), lambda _events: self._hear(ear, BATCH))

    def _close(self, ear: InterfaceSocket) -> None:
        if ear.port:
            self.loop.forget(ear.port.fileno())
            ear.port.close()
        ear.port = ear.opened_for = None

    def close(self) -> None:
        for ear in self._ears.values():
            self._close(ear)

    def is_open(self, router: Router) -> bool:
        ear = self._ears.get(router.port)
        return bool(ear and ear.port)

    def send(self, router: Router, priority: int, prepared: PreparedCalls = NONE) -> None:
        """Send an Advertisement to every peer; a failure for one peer does not stop the others."""
        port, key = self._egress_socket(router), f"send {router.name}"
        failure, reached = "" if port else ": there is no socket", False
        for destination, send in router.words(port, priority) if port else ():
            try:
                prepared.pop((router.name, priority, destination), send)()
                reached = True
            except OSError as error:
                failure = f" to {destination}: {error.strerror}"
        router.sent += reached
        if failure:
            self.log.fault(key, f"{router.name}: no Advertisement can be sent{failure}")
        else:
            router.words(port, 0)  # a farewell is in a hurry, and this is not
            self.log.cured(key, f"{router.name}: Advertisements can be sent")

    def prepare(self, router: Router, priority: int) -> PreparedCalls:
        """Return the calls that ``send`` makes."""
        port = self._egress_socket(router)
        senders = router.words(port, priority) if port else ()
        return {(router.name, priority, destination): PreparedCall(send) for destination, send in senders}

    def _egress_socket(self, router: Router) -> Any:
        """Return the socket that a router can send by now, if there is one."""
        ear = self._ears.get(router.port)
        return ear.port if ear and router.place.source else None

    def catch_up(self, router: Router) -> None:
        """Hear what has arrived for a router before it acts on not having heard anything."""
        ear = self._ears.get(router.port)
        if ear:
            self._hear(ear, BACKLOG)

    def forget(self) -> None:
        """Pass over what has arrived until now: somebody else hears it."""
        for ear in self._ears.values():
            for _count in range(BACKLOG):
                if not (ear.port and ear.port.receive()):
                    break

    def _hear(self, ear: InterfaceSocket, limit: int) -> None:
        for _count in range(limit):
            datagram = ear.port.receive() if ear.port else None
            if datagram is None:
                return
            self._receive(ear, datagram, self.loop.now() - datagram.age)

    def _receive(self, ear: InterfaceSocket, datagram: Datagram, arrived: int) -> None:
        router = ear.routers.get(validation.vrid_of(datagram.message))
        said = validation.validate(datagram, router.ours if router else None)
        if isinstance(said, packet.Discard):
            self._discard(router or ear, datagram.source, said)
        elif said and router:
            self._compare(router, said, datagram.source)
            self.tell(router, router.heard(said, datagram.source), arrived)

    def _discard(self, where: Any, source: str, why: packet.Discard) -> None:
        where.discard(why.reason)
        self._complain((where.name, why.reason), f"a message from {source} is discarded: {why.detail}")

    def _complain(self, key: Tuple[str, str], text: str) -> None:
        """Say it once, whoever else sends something of its kind: a flood of messages must not become one of lines."""
        if key not in self._faults:
            self.log.fault(" ".join(key), f"{key[0]}: {text}")
        self._faults[key] = self.loop.now()
        if not self._sweeping:
            self._sweeping = True
            self.loop.after(QUIET, self._sweep)

    def _sweep(self) -> None:
        """Faults of others end by not coming any more."""
        over = self.loop.now() - QUIET
        for key in [key for key, last in self._faults.items() if last <= over]:
            del self._faults[key]
            self.log.cured(" ".join(key), f"{key[0]}: no such message comes any more ({key[1]})")
        self._sweeping = bool(self._faults)
        if self._sweeping:
            self.loop.after(QUIET // 4, self._sweep)

    def _compare(self, router: Router, said: packet.Advertisement, source: str) -> None:
        """Another list of addresses is worth a line, never a discard (RFC 9568 section 7.1)."""
        ours = router.advertisement.addresses
        if said.priority and said.addresses != ours and sorted(said.addresses) != sorted(ours):
            self._complain((router.name, ADDRESSES), f"{source} has other addresses: {', '.join(said.addresses)}")
