# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Resigns for a predecessor that does not speak VRRP, such as kube-vip, whose end the routers cannot hear.

Routers that have just started wait for Active_Down_Interval, some four seconds. An Advertisement of priority 0 from
each of their peers shortens that to Skew_Time (RFC 9568, 6.4.2).
"""

from __future__ import annotations

from typing import Any, Iterable

from ..net import netlink, sockets
from ..runtime.log import Log
from . import conf
from .last_will import destinations
from .senders import OpenSocket, reason, senders


def resign(routers: Iterable[conf.Router], kernel: Any, open_socket: OpenSocket, log: Any) -> bool:
    """Send priority 0 to the peers of each router; return whether all of it was sent.

    :param kernel: a `netlink.Netlink`
    :param open_socket: `sockets.open_socket`
    """
    there, done = (kernel.links(), kernel.addresses()), True
    for router in routers:
        try:
            for _to, send in senders(router, 0, destinations(router), there, open_socket):
                send()
        except (OSError, ValueError) as error:
            log.warning(f"{router.name}: priority 0 cannot be sent: {reason(error)}.")
            done = False
    return done


def main(path: str) -> int:
    """Resign for the predecessor of the keepalived with this configuration; return the exit code."""
    log = Log()
    try:
        with open(path, encoding="utf-8", errors=conf.UNDECODED) as file:
            text = file.read()
        return int(not resign(conf.routers(text), netlink.Netlink(), sockets.open_socket, log))
    except OSError as error:
        log.warning(f"{error.filename or 'The network'} cannot be read: {reason(error)}.")
        return 1
