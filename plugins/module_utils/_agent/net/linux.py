# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Socket options of Linux that Python's socket module has no name for."""

from __future__ import annotations

import contextlib
import socket

# <linux/in.h>: on by default, and then a socket also receives for groups that other sockets have joined.
IP_MULTICAST_ALL = 49
# <asm-generic/socket.h>
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
# <linux/icmpv6.h>
ICMPV6_FILTER = 1
# <linux/netlink.h>
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 270, 1
# <linux/if_packet.h>
PACKET_OUTGOING = 4
# <linux/pkt_sched.h>: goes first in the queue of an interface; needs no privilege.
TC_PRIO_INTERACTIVE = 6


def set_receive_buffer(sock: socket.socket, size: int) -> None:
    """Set the receive buffer in bytes; beyond the system's limit (net.core.rmem_max) with the privilege."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    with contextlib.suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, size)
