# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Routes as rtnetlink(7) has them. Pure functions over the bodies of messages."""

from __future__ import annotations

import socket
import struct
from typing import Dict, NamedTuple, Optional

from . import messages

# <linux/rtnetlink.h>
NEW_ROUTE, DELETE_ROUTE, GET_ROUTE = 24, 25, 26
GROUPS = (7, 11)  # RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE
DESTINATION, INTERFACE, GATEWAY, METRIC, PREFERRED_SOURCE, TABLE = 1, 4, 5, 6, 7, 15
UNICAST, UNIVERSE, NOWHERE, CLONED = 1, 0, 255, 0x200
# keepalived's number, which ip-route(8) shows by that name: each engine knows what the other has left.
PROTOCOL = 18
MAIN_TABLE = 254
IPV6_METRIC = 1024  # what the kernel gives a route without one

# struct rtmsg: family, lengths of destination and source, TOS, table, protocol, scope, type, flags.
_ROUTE = struct.Struct("=BBBBBBBBI")
_NUMBER = struct.Struct("=I")
EVERY = bytes(_ROUTE.size)  # the body of a request for all routes
_BITS: Dict[int, int] = {socket.AF_INET: 32, socket.AF_INET6: 128}


class Route(NamedTuple):
    """A route of a VRRP router; what is empty or 0 is left to the kernel."""

    to: str  # a network with its prefix length
    via: str = ""
    index: int = 0  # type: ignore[assignment]  # of the interface; a tuple has a method of that name
    src: str = ""
    metric: int = 0
    table: int = MAIN_TABLE


def body(route: Route, adding: bool) -> bytes:
    """Return the message that adds or deletes a route."""
    network, _slash, length = route.to.partition("/")
    family = _family(network)
    scope, kind = (UNIVERSE, UNICAST) if adding else (NOWHERE, 0)  # to delete: any
    table = route.table if route.table < 256 else 0
    found = _ROUTE.pack(family, int(length), 0, 0, table, PROTOCOL, scope, kind, 0)
    for attribute, address in ((DESTINATION, network), (GATEWAY, route.via), (PREFERRED_SOURCE, route.src)):
        if address:
            found += messages.attribute(attribute, socket.inet_pton(family, address))
    for attribute, number in ((INTERFACE, route.index), (METRIC, route.metric), (TABLE, route.table)):
        if number:
            found += messages.attribute(attribute, _NUMBER.pack(number))
    return found


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def route_in(message: bytes) -> Optional[Route]:
    """Return the route that a message is about, None if it is malformed or another program's."""
    if len(message) < _ROUTE.size:
        return None
    family, length, _source, _tos, few_tables, protocol, _scope, kind, flags = _ROUTE.unpack_from(message)
    if family not in _BITS or length > _BITS[family] or (protocol, kind) != (PROTOCOL, UNICAST) or flags & CLONED:
        return None
    found = messages.attributes(message[_ROUTE.size :])
    network = _address(family, found, DESTINATION) or ("::" if family == socket.AF_INET6 else "0.0.0.0")
    return Route(
        f"{network}/{length}",
        _address(family, found, GATEWAY),
        _number(found, INTERFACE),
        _address(family, found, PREFERRED_SOURCE),
        _number(found, METRIC),
        _number(found, TABLE) or few_tables,
    )


def _address(family: int, found: Dict[int, bytes], kind: int) -> str:
    packed = found.get(kind, b"")
    return socket.inet_ntop(family, packed) if len(packed) == _BITS[family] // 8 else ""


def _number(found: Dict[int, bytes], kind: int) -> int:
    packed = found.get(kind, b"")
    return int(_NUMBER.unpack(packed)[0]) if len(packed) == _NUMBER.size else 0


def is_superseded(left: Route, by: Route) -> bool:
    """Whether a route has the network, table and metric of another one, but leads another way."""
    if (left.to, left.table, _metric(left)) != (by.to, by.table, _metric(by)):
        return False
    return left.via != by.via or by.index not in (0, left.index) or by.src not in ("", left.src)


def _metric(route: Route) -> int:
    return route.metric or (IPV6_METRIC if ":" in route.to else 0)
