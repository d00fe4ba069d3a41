# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The raw sockets of VRRP, protocol 112: one for each interface and family.

SO_BINDTODEVICE ties a socket to the interface's index, not to its name: a socket, with its group, survives when the
interface is renamed, goes down or comes back up. An interface that was removed and created again has another index:
then the socket receives nothing and sending fails with ENODEV, so it must be closed and opened again.
"""

from __future__ import annotations

import socket
import struct
import time
from functools import partial
from typing import Any, Callable, Collection, List, Optional, Tuple

from ..vrrp.core.packet import GROUP, GROUP6, PROTOCOL, REQUIRED_HOP_LIMIT
from . import bpf, linux, vrrp_filter
from .ip import IPV4, TRAFFIC_CLASS, Datagram, ipv4_header, read

# The largest message has 255 IPv6 addresses, 4088 bytes; anything after that is padding.
MAX_PACKET = 8192
RECEIVE_BUFFER = 1 << 20

MAX_AGE = 1000  # microseconds: the clock of the timestamps may be set at any time, so a greater age is not trusted

# struct ip_mreqn, ipv6_mreq, in6_pktinfo and timespec.
_MEMBERSHIP, _MEMBERSHIP6, _PKTINFO, _NUMBER = (struct.Struct(form) for form in ("=4s4si", "=16si", "=16si", "=i"))
_MOMENT = struct.Struct("@ll")
_ANCILLARY = sum(socket.CMSG_SPACE(each.size) for each in (_PKTINFO, _NUMBER, _MOMENT))

Opener = Callable[[int, int, int], Any]


class RawSocket:
    """Sends and receives VRRP messages on one interface, in one family. Never blocks.

    With ``multicast`` it receives the group of VRRP besides unicast, without it unicast alone. What it sends to the
    group does not come back to this host.

    :raises OSError: no privilege (EPERM), no such interface (ENODEV)
    """

    family = socket.AF_UNSPEC

    def __init__(self, interface: str, index: int, multicast: bool, opener: Opener = socket.socket) -> None:
        self.index = index
        self._multicast = multicast
        self._socket = opener(self.family, socket.SOCK_RAW, PROTOCOL)
        try:
            # First: until then, for some microseconds, it receives from every interface.
            self._set(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\x00")
            self._socket.setblocking(False)
            linux.set_receive_buffer(self._socket, RECEIVE_BUFFER)
            self._set(socket.SOL_SOCKET, linux.SO_TIMESTAMPNS, 1)
            self._prepare()
            # After the traffic class, which sets a priority as well.
            self._set(socket.SOL_SOCKET, socket.SO_PRIORITY, linux.TC_PRIO_INTERACTIVE)
            if multicast:
                self._join()
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return int(self._socket.fileno())

    def listen_for(self, vrids: Collection[int]) -> None:
        """Receive the messages for these Virtual Routers only, and those that have arrived already."""
        bpf.attach(self._socket, vrrp_filter.program(6 if self.family == socket.AF_INET6 else 4, vrids))

    def receive(self) -> Optional[Datagram]:
        """Return the next message, None if there is none now."""
        while True:
            try:
                datagram = self._receive()
            except BlockingIOError:
                return None
            if datagram:
                return datagram

    def sending(self, message: bytes, source: str, destination: str) -> Callable[[], Any]:
        """Return a call that sends a message to a router or to the group; it can be repeated and never blocks.

        It raises OSError: the interface is gone (ENODEV) or down, there is no route (ENETUNREACH), IPv6 lacks the
        source or still checks it for duplicates (EINVAL), a firewall forbids it (EPERM).
        """
        raise NotImplementedError

    def close(self) -> None:
        self._socket.close()

    def _set(self, level: int, option: int, value: Any) -> None:
        self._socket.setsockopt(level, option, value)

    def _prepare(self) -> None:
        raise NotImplementedError

    def _join(self) -> None:
        raise NotImplementedError

    def _receive(self) -> Optional[Datagram]:
        raise NotImplementedError


class RawSocket4(RawSocket):
    """IPv4: the kernel passes the header on, and lets us write it."""

    family = socket.AF_INET

    def _prepare(self) -> None:
        self._set(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
        self._set(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        self._set(socket.IPPROTO_IP, linux.IP_MULTICAST_ALL, 0)

    def _join(self) -> None:
        membership = _MEMBERSHIP.pack(socket.inet_aton(GROUP), bytes(4), self.index)
        self._set(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)

    def _receive(self) -> Optional[Datagram]:
        packet, ancillary, _flags, _source = self._socket.recvmsg(MAX_PACKET, _ANCILLARY)
        datagram = read(packet, IPV4)
        return datagram and datagram._replace(age=_age(ancillary))

    def sending(self, message: bytes, source: str, destination: str) -> Callable[[], Any]:
        header = ipv4_header(source, destination, len(message))
        return partial(self._socket.sendto, header + message, (destination, 0))


class RawSocket6(RawSocket):
    """IPv6: the kernel keeps the header and reports its fields (RFC 3542, 6)."""

    family = socket.AF_INET6

    def _prepare(self) -> None:
        self._set(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, REQUIRED_HOP_LIMIT)
        self._set(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, REQUIRED_HOP_LIMIT)
        self._set(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, TRAFFIC_CLASS)
        self._set(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        self._set(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        self._set(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)

    def _join(self) -> None:
        membership = _MEMBERSHIP6.pack(socket.inet_pton(socket.AF_INET6, GROUP6), self.index)
        self._set(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)

    def _receive(self) -> Optional[Datagram]:
        message, ancillary, _flags, source = self._socket.recvmsg(MAX_PACKET, _ANCILLARY)
        fields = {kind: data for level, kind, data in ancillary if level == socket.IPPROTO_IPV6}
        where, hops = fields.get(socket.IPV6_PKTINFO, b""), fields.get(socket.IPV6_HOPLIMIT, b"")
        if len(where) != _PKTINFO.size or len(hops) != _NUMBER.size:
            return None
        destination = socket.inet_ntop(socket.AF_INET6, where[:16])
        # A raw socket receives for every group that this host has joined; IPV6_MULTICAST_ALL does not change that.
        if where[0] == 0xFF and not (self._multicast and destination == GROUP6):
            return None
        return Datagram(
            source[0].partition("%")[0], destination, _NUMBER.unpack(hops)[0], message, True, _age(ancillary)
        )

    def sending(self, message: bytes, source: str, destination: str) -> Callable[[], Any]:
        where = _PKTINFO.pack(socket.inet_pton(socket.AF_INET6, source), self.index)
        ancillary = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, where)]
        return partial(self._socket.sendmsg, [message], ancillary, 0, (destination, 0, 0, self.index))


def _age(ancillary: List[Tuple[int, int, bytes]]) -> int:
    """Return how many microseconds ago the kernel stamped a message, 0 if that cannot be trusted."""
    for level, kind, stamp in ancillary:
        if (level, kind, len(stamp)) == (socket.SOL_SOCKET, linux.SO_TIMESTAMPNS, _MOMENT.size):
            seconds, nanoseconds = _MOMENT.unpack(stamp)
            age = (time.time_ns() - nanoseconds) // 1000 - seconds * 1_000_000
            return age if 0 <= age <= MAX_AGE else 0
    return 0


def open_socket(interface: str, index: int, family: int, multicast: bool) -> RawSocket:
    """Open the VRRP socket of an interface for family 4 or 6."""
    return (RawSocket6 if family == 6 else RawSocket4)(interface, index, multicast)
