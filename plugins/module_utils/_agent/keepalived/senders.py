# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Advertisements in the name of a keepalived on this host."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Sequence, Tuple

from ..net import netlink
from ..vrrp.core import packet
from . import conf

LOWEST = 1  # of the priorities: nobody yields to it, and 0 would say that this router resigns
Send = Callable[[], Any]
OpenSocket = Callable[[str, int, int, bool], Any]  # as `sockets.open_socket`


def advertisement(router: conf.Router, priority: int) -> packet.Advertisement:
    """Return an Advertisement of a Virtual Router.

    Its peers discard one that differs from the others of this router in anything but the priority.
    """
    password = router.auth_pass.encode(errors=conf.UNDECODED)[: packet.PASSWORD_SIZE] if router.version == 2 else b""
    return packet.Advertisement(
        version=router.version,
        vrid=router.vrid,
        priority=priority,
        interval=round(router.interval * packet.SECOND / packet.CENTISECOND) * packet.CENTISECOND,
        addresses=router.advertised,
        auth_type=packet.PASSWORD if password else packet.NO_AUTHENTICATION,
        auth_pass=password,
    )


def senders(
    router: conf.Router,
    priority: int,
    destinations: Iterable[str],
    there: Tuple[Sequence[netlink.Link], Sequence[netlink.Address]],
    open_socket: OpenSocket,
) -> List[Tuple[str, Send]]:
    """Return a call for each destination that sends it an Advertisement.

    :param there: the interfaces and addresses of this host
    :raises OSError: there is no socket
    :raises ValueError: there is no address to send from
    """
    links, addresses = there
    index = next((link.index for link in links if link.name == router.interface), 0)
    virtual = [each.address for each in router.held]
    source = router.source or netlink.primary_address(addresses, index, router.family, virtual)
    if not source:
        raise ValueError(f"{router.interface} has no address to send from")
    port = open_socket(router.interface, index, router.family, False)
    message = advertisement(router, priority)
    return [(to, port.sending(packet.encode(message, source, to), source, to)) for to in destinations]


def reason(error: Exception) -> str:
    """Return why a call has failed, as the kernel says it."""
    return str(getattr(error, "strerror", None) or error)
