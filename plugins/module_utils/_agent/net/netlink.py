# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's links, addresses and routes, by rtnetlink(7): reads them, follows their changes, and changes them.

Reading and writing messages is pure; only ``Netlink`` uses sockets. It has two: one for requests, which the kernel
answers at once, and one for events about all changes.

To miss nothing, create a ``Netlink``, which subscribes to events; then read all links and addresses; then follow the
events. Those that arrived meanwhile may repeat changes that were read already: an address may be reported gone and
back, but the final state is right.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from functools import partial
from typing import Any, Callable, Collection, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import linux, messages, neighbour_table, routing
from .messages import Message

# <linux/rtnetlink.h>
NEW_LINK, DELETE_LINK, GET_LINK = 16, 17, 18
NEW_ADDRESS, DELETE_ADDRESS, GET_ADDRESS = 20, 21, 22
GROUPS = 0x001 | 0x010 | 0x100  # RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
# <linux/if.h> and <linux/if_link.h>
IFF_UP, IFF_RUNNING = 0x01, 0x40
LINK_ADDRESS, LINK_NAME, LINK_WIRELESS = 1, 3, 11
# <linux/if_addr.h>
ADDRESS_ADDRESS, ADDRESS_LOCAL, ADDRESS_CACHEINFO, ADDRESS_FLAGS = 1, 2, 6, 8
NO_DAD, DAD_FAILED, TENTATIVE = 0x02, 0x08, 0x40
FOREVER = 0xFFFFFFFF

# struct ifinfomsg (family, type, index, flags, change), ifaddrmsg (family, prefix, flags, scope, index) and
# ifa_cacheinfo (preferred, valid, created, updated).
_LINK, _ADDRESS, _LIFETIMES = (struct.Struct(form) for form in ("=BxHiII", "=BBBBI", "=IIII"))
_FLAGS = struct.Struct("=I")
FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 16}  # the size of an address in bytes

ANSWER_SIZE = 65536
ACKNOWLEDGEMENT_SIZE = 4096
ANSWER_TIMEOUT_S = 5  # the kernel answers at once; this is for a broken one
RECEIVE_BUFFER = 8 << 20  # an event takes about 1 KiB of it
# Datagrams read in one callback, about 1 ms of work: an Advertisement may be due.
BATCH = 64
DUMP_TRIES = 10


class Link(NamedTuple):
    """An interface as it is now."""

    index: int  # type: ignore[assignment]  # a tuple has a method of that name
    name: str
    up: bool  # administratively up, and with a carrier
    mac: bytes


class Address(NamedTuple):
    """An address of an interface."""

    index: int  # type: ignore[assignment]
    address: str  # as inet_ntop writes it, without prefix or scope
    prefix: int
    usable: bool  # duplicate address detection is over and found none


def primary_address(
    addresses: Iterable[Address], index: int, family: int, virtual: Collection[str] = ()
) -> Optional[str]:
    """Return the address from which a VRRP router on an interface sends (RFC 9568 section 6.1).

    For IPv4 it is the first one, for IPv6 the link-local one.

    :param virtual: the virtual addresses, without prefix length, which come and go
    """
    for found in addresses:
        mine = found.index == index and found.usable and found.address not in virtual
        if mine and (_is_link_local(found.address) if family == 6 else ":" not in found.address):
            return found.address
    return None


def _is_link_local(address: str) -> bool:
    """Whether an address is in fe80::/10 (RFC 4291, 2.5.6)."""
    if ":" not in address:
        return False
    first, second = socket.inet_pton(socket.AF_INET6, address)[:2]
    return first == 0xFE and second & 0xC0 == 0x80


class LinkUpdated(NamedTuple):
    """It is new or has changed; it may also be the same as before."""

    link: Link


class LinkGone(NamedTuple):
    link: Link


class AddressUpdated(NamedTuple):
    """It is new or has changed; it may also be the same as before."""

    address: Address


class AddressGone(NamedTuple):
    address: Address


class RouteGone(NamedTuple):
    """A route of a VRRP router of this host is gone; it need not be one of this program's."""

    route: routing.Route


class NeighbourKnown(NamedTuple):
    """The kernel knows the MAC of a host; it may also be the same as before."""

    neighbour: neighbour_table.Neighbour


class Lost(NamedTuple):
    """Events were lost: read all links and addresses again, then follow the events."""


Event = Union[LinkUpdated, LinkGone, AddressUpdated, AddressGone, RouteGone, NeighbourKnown, Lost]


def link_in(body: bytes) -> Optional[Link]:
    """Return the link that a message is about, None if it is about something else.

    A bridge reports its ports by the same messages with a family of its own, and removes only the port. A wireless
    event does not describe the whole link.
    """
    if len(body) < _LINK.size:
        return None
    family, _type, index, flags, _change = _LINK.unpack_from(body)
    found = messages.attributes(body[_LINK.size :])
    if family != socket.AF_UNSPEC or LINK_NAME not in found or LINK_WIRELESS in found:
        return None
    name = found[LINK_NAME].rstrip(b"\x00").decode("utf-8", "backslashreplace")
    up = flags & (IFF_UP | IFF_RUNNING) == IFF_UP | IFF_RUNNING
    return Link(index, name, up, found.get(LINK_ADDRESS, b""))


def address_in(body: bytes) -> Optional[Address]:
    """Return the address that a message is about, None if it is of another family or malformed."""
    if len(body) < _ADDRESS.size:
        return None
    family, prefix, few_flags, _scope, index = _ADDRESS.unpack_from(body)
    found = messages.attributes(body[_ADDRESS.size :])
    # If both are present, the other one is the far end of a point-to-point link.
    packed = found.get(ADDRESS_LOCAL, found.get(ADDRESS_ADDRESS, b""))
    if len(packed) != FAMILIES.get(family):
        return None
    all_flags = found.get(ADDRESS_FLAGS, b"")
    flags = _FLAGS.unpack(all_flags)[0] if len(all_flags) == _FLAGS.size else few_flags
    return Address(index, socket.inet_ntop(family, packed), prefix, usable=not flags & (TENTATIVE | DAD_FAILED))


READERS: Sequence[Tuple[int, Callable[[bytes], Any], Callable[[Any], Event]]] = (
    (NEW_LINK, link_in, LinkUpdated),
    (DELETE_LINK, link_in, LinkGone),
    (NEW_ADDRESS, address_in, AddressUpdated),
    (DELETE_ADDRESS, address_in, AddressGone),
    (routing.DELETE_ROUTE, routing.route_in, RouteGone),
    (neighbour_table.NEW_NEIGHBOUR, neighbour_table.known_in, NeighbourKnown),
)


def events_in(data: bytes) -> List[Event]:
    """Return the events of one datagram, in order."""
    found: List[Event] = []
    for message in messages.decode(data):
        for kind, reader, event in READERS:
            about = reader(message.body) if message.kind == kind else None
            if about:
                found.append(event(about))
    return found


def address_body(index: int, address: str, adding: bool) -> bytes:
    """Return the message that adds or deletes an address with its prefix, such as 192.0.2.10/32.

    An IPv6 address is usable at once, without duplicate address detection: VRRP has decided who holds it. Alone in its
    network (/128) it is deprecated from the start, so that the host never chooses it as a source address: such a
    connection would break when the address moves. IPv4 chooses by the network, where a /32 is never first.
    """
    text, _slash, prefix = address.partition("/")
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    packed = socket.inet_pton(family, text)
    v6 = family == socket.AF_INET6
    length = int(prefix) if prefix else 8 * len(packed)
    body = _ADDRESS.pack(family, length, NO_DAD if v6 and adding else 0, 0, index)
    body += messages.attribute(ADDRESS_LOCAL, packed) + messages.attribute(ADDRESS_ADDRESS, packed)
    if v6 and length == 128 and adding:
        body += messages.attribute(ADDRESS_CACHEINFO, _LIFETIMES.pack(0, FOREVER, 0, 0))
    return body


def open_route_socket() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)


class Netlink:
    """The links, addresses, routes and neighbours of the current network namespace."""

    def __init__(self, opener: Callable[[], Any] = open_route_socket) -> None:
        self._serial = 0
        self._request_socket = opener()
        self._event_socket = opener()
        self._request_socket.settimeout(ANSWER_TIMEOUT_S)
        self._event_socket.setblocking(False)
        linux.set_receive_buffer(self._event_socket, RECEIVE_BUFFER)
        self._event_socket.bind((0, GROUPS))

    def links(self) -> List[Link]:
        found = self._dump(GET_LINK, _LINK.pack(0, 0, 0, 0, 0))
        return list(filter(None, (link_in(message.body) for message in found if message.kind == NEW_LINK)))

    def addresses(self) -> List[Address]:
        found = self._dump(GET_ADDRESS, _ADDRESS.pack(0, 0, 0, 0, 0))
        return list(filter(None, (address_in(message.body) for message in found if message.kind == NEW_ADDRESS)))

    def routes(self) -> List[routing.Route]:
        """Return the routes that VRRP routers have added, and not removed."""
        found = self._dump(routing.GET_ROUTE, routing.EVERY)
        kind = routing.NEW_ROUTE
        return list(filter(None, (routing.route_in(message.body) for message in found if message.kind == kind)))

    def unanswered(self) -> List[neighbour_table.Neighbour]:
        """Return the neighbours whose MACs the kernel asks for."""
        return self._neighbours(neighbour_table.unanswered_in)

    def neighbours(self) -> List[neighbour_table.Neighbour]:
        """Return the neighbours whose MACs the kernel knows."""
        return self._neighbours(neighbour_table.known_in)

    def ask(self, index: int, address: str) -> None:
        """Make the kernel ask for a neighbour's MAC, or whether it still has that. Raises OSError.

        The answer is an event, see ``follow_neighbours``.
        """
        self._changing(
            neighbour_table.NEW_NEIGHBOUR, messages.CREATE, neighbour_table.question(index, address), address
        )()

    def follow_routes(self) -> None:
        """Subscribe to events about routes. Do so only if any are configured: a host may have very many others."""
        self._follow(*routing.GROUPS)

    def follow_neighbours(self) -> None:
        """Subscribe to events about neighbours whose MACs the kernel learns."""
        self._follow(neighbour_table.GROUP)

    def adding(self, index: int, address: str) -> Callable[[], None]:
        """Return a call that adds an address with its prefix length.

        It raises OSError: the address is present (EEXIST), in IPv6 with whatever prefix length; no such interface
        (ENODEV), no privilege (EPERM), IPv6 is off (EACCES).
        """
        body = address_body(index, address, adding=True)
        flags = messages.CREATE | messages.EXCLUSIVE
        return self._changing(NEW_ADDRESS, flags, body, address)

    def delete(self, index: int, address: str) -> None:
        """Delete an address with its prefix length. Without the interface it is gone already, which is no error.

        :raises OSError: not present with this prefix length (EADDRNOTAVAIL), no privilege (EPERM)
        """
        body = address_body(index, address, adding=False)
        self._changing(DELETE_ADDRESS, 0, body, address, (errno.ENODEV, errno.ENXIO))()

    def adding_route(self, route: routing.Route) -> Callable[[], None]:
        """Return a call that adds a route before others to the same network, as keepalived does.

        It raises OSError: the route is present (EEXIST), the gateway is not on a link (ENETUNREACH, EHOSTUNREACH), the
        interface is down (ENETDOWN) or gone (ENODEV), the source is none of this host's addresses (EINVAL).
        """
        return self._changing(routing.NEW_ROUTE, messages.CREATE, routing.body(route, adding=True), route.to)

    def delete_route(self, route: routing.Route) -> None:
        """Delete a route that a VRRP router has added; one that is not there, or has another origin, is no error."""
        body = routing.body(route, adding=False)
        self._changing(routing.DELETE_ROUTE, 0, body, route.to, (errno.ESRCH, errno.ENODEV, errno.ENXIO))()

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are events."""
        return int(self._event_socket.fileno())

    def events(self) -> List[Event]:
        """Return events, oldest first, or ``Lost`` alone; at most BATCH datagrams, so more may be waiting."""
        found: List[Event] = []
        for _turn in range(BATCH):
            try:
                found += events_in(self._event_socket.recv(ANSWER_SIZE))
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._discard_pending()
                return [Lost()]
        return found

    def _discard_pending(self) -> None:
        """Discard waiting events: they are older than those that the kernel dropped.

        Reported after Lost, they could contradict what is read then: an address that was removed and added again would
        seem gone for good.
        """
        while True:
            try:
                self._event_socket.recv(ANSWER_SIZE)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise

    def close(self) -> None:
        self._request_socket.close()
        self._event_socket.close()

    def _follow(self, *groups: int) -> None:
        for group in groups:
            self._event_socket.setsockopt(linux.SOL_NETLINK, linux.NETLINK_ADD_MEMBERSHIP, group)

    def _neighbours(
        self, read: Callable[[bytes], Optional[neighbour_table.Neighbour]]
    ) -> List[neighbour_table.Neighbour]:
        found = self._dump(neighbour_table.GET_NEIGHBOUR, neighbour_table.EVERY)
        kind = neighbour_table.NEW_NEIGHBOUR
        return list(filter(None, (read(message.body) for message in found if message.kind == kind)))

    def _changing(
        self, kind: int, flags: int, body: bytes, address: str, harmless: Tuple[int, ...] = ()
    ) -> Callable[[], None]:
        return partial(self._change, *self._request(kind, messages.ACKNOWLEDGE | flags, body), address, harmless)

    def _change(self, request: bytes, serial: int, address: str, harmless: Tuple[int, ...]) -> None:
        self._request_socket.send(request)
        answer = self._request_socket.recv(ACKNOWLEDGEMENT_SIZE)
        if messages.acknowledges(answer, serial):  # the common case, on the path of a takeover
            return
        number = messages.failure(self._answer(serial, answer)[-1])
        if number and number not in harmless:
            raise OSError(number, os.strerror(number), address)

    def _dump(self, kind: int, body: bytes) -> List[Message]:
        """Read all objects of a kind; again if they changed meanwhile, because some may be missing."""
        found: List[Message] = []
        for _turn in range(DUMP_TRIES):
            found = self._query(*self._request(kind, messages.DUMP, body))
            number = messages.failure(found[-1])
            if number:
                raise OSError(number, os.strerror(number))
            if not any(message.flags & messages.DUMP_INTERRUPTED for message in found):
                break
        return found

    def _request(self, kind: int, flags: int, body: bytes) -> Tuple[bytes, int]:
        """Return a message and its serial number, which its answer has."""
        self._serial += 1
        return messages.encode(Message(kind, messages.REQUEST | flags, self._serial, body)), self._serial

    def _query(self, request: bytes, serial: int) -> List[Message]:
        """Send a request and return its answer, see ``_answer``."""
        self._request_socket.send(request)
        return self._answer(serial, self._request_socket.recv(ANSWER_SIZE))

    def _answer(self, serial: int, data: bytes) -> List[Message]:
        """Return the messages of an answer that begins with ``data``; the last one is DONE or ERROR."""
        found: List[Message] = []
        while True:
            found += [message for message in messages.decode(data) if message.serial == serial]
            if found and found[-1].kind in (messages.DONE, messages.ERROR):
                return found
            data = self._request_socket.recv(ANSWER_SIZE)
