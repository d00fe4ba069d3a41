# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel's events about its nftables ruleset: which tables another program has changed.

The kernel sends them after each transaction, to whoever has subscribed. They name the table and the socket that has
changed it, which has as a rule the number of its process.
"""

from __future__ import annotations

import errno
import socket
from typing import Any, Callable, Collection, FrozenSet, NamedTuple, Set

from . import linux, messages

# <linux/netlink.h>, <linux/netfilter/nfnetlink.h> and <linux/netfilter/nf_tables.h>
NETLINK_NETFILTER = 12
SUBSYSTEM, GROUP = 10, 7  # NFNL_SUBSYS_NFTABLES, NFNLGRP_NFTABLES
NEW_GENERATION = 15  # NFT_MSG_NEWGEN, the end of a transaction
TABLE = 1  # NFTA_TABLE_NAME, and the same number in the messages about what a table has
FAMILIES = {1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}
_HEADER_SIZE = 4  # struct nfgenmsg, whose first octet is the family

SIZE = 1 << 20  # more than any datagram
RECEIVE_BUFFER = 8 << 20
BATCH = 64


class TableName(NamedTuple):
    """As nft writes it."""

    family: str
    name: str


class Lost(Exception):
    """Events were lost: anything may have changed."""


class Part(NamedTuple):
    """What a datagram says of a transaction of another program, which may take several datagrams.

    :ivar ended: whether it is the last one
    """

    tables: FrozenSet[TableName] = frozenset()
    ended: bool = False


def part_in(data: bytes, own: Collection[int] = ()) -> Part:
    """Return what a datagram says.

    :param own: the sockets whose changes do not count
    """
    found, ended = set(), False
    for message in messages.decode(data):
        if message.port in own:
            break
        subsystem, kind = message.kind >> 8, message.kind & 0xFF
        if subsystem != SUBSYSTEM or len(message.body) < _HEADER_SIZE:
            continue
        if kind == NEW_GENERATION:
            ended = True
            continue
        name = messages.attributes(message.body[_HEADER_SIZE:]).get(TABLE, b"")
        family = FAMILIES.get(message.body[0], "")
        found.add(TableName(family, name.rstrip(b"\0").decode("utf-8", "backslashreplace")))
    return Part(frozenset(found), ended)


def open_socket() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)


class Changes:
    """The changes of the current network namespace's ruleset. Raises OSError without CAP_NET_ADMIN."""

    def __init__(self, opener: Callable[[], Any] = open_socket) -> None:
        self._begun: Set[TableName] = set()  # what a transaction has changed whose end was not read yet
        self._socket = opener()
        self._socket.setblocking(False)
        linux.set_receive_buffer(self._socket, RECEIVE_BUFFER)
        self._socket.bind((0, 0))
        self._socket.setsockopt(linux.SOL_NETLINK, linux.NETLINK_ADD_MEMBERSHIP, GROUP)

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are changes."""
        return int(self._socket.fileno())

    def tables(self, own: Collection[int]) -> Set[TableName]:
        """Return the tables that others have changed; at most BATCH datagrams, so more may be waiting. Raises Lost.

        :param own: the processes whose changes do not count
        """
        found: Set[TableName] = set()
        for _turn in range(BATCH):
            try:
                part = part_in(self._socket.recv(SIZE), own)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    raise Lost from None
                raise
            self._begun |= part.tables
            if part.ended:
                found, self._begun = found | self._begun, set()
        return found

    def close(self) -> None:
        self._socket.close()
