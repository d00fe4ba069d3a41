# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Starts keepalived in the place of a predecessor that does not speak VRRP, such as kube-vip.

No router can hear that the predecessor has ended. Routers that have just started wait for Active_Down_Interval, some
four seconds. An Advertisement of priority 0 from each of their peers shortens that to Skew_Time (RFC 9568, 6.4.2). A
router that still waits for its first checks discards it, so each one is sent until somebody holds the address.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..net import netlink, sockets
from ..net.neighbours import NeighbourProber
from ..runtime.log import Log
from . import conf
from .peers import Wait, find, readable
from .resignation import destinations
from .senders import OpenSocket, reason, senders

LIMIT = 10.0  # seconds, after which it is not the routers' start that they wait for
There = Tuple[Sequence[netlink.Link], Sequence[netlink.Address]]


class Predecessor:
    """What has held the addresses of some routers so far, and is gone."""

    def __init__(
        self,
        kernel: Any,
        open_socket: OpenSocket,
        prober: Callable[[str, int], Any] = NeighbourProber,
        wait: Wait = readable,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        :param kernel: a `netlink.Netlink`
        :param open_socket: `sockets.open_socket`
        """
        self._kernel, self._open_socket, self._wait, self._now = kernel, open_socket, wait, now
        self._prober = prober
        self._probers: Dict[Tuple[str, int], Any] = {}

    def resign(self, routers: Sequence[conf.Router]) -> List[conf.Router]:
        """Send priority 0 to the peers of each router until somebody holds its address; return those that nobody holds.

        :raises OSError: there is no socket
        :raises ValueError: there is no address to send from
        """
        end = self._now() + LIMIT
        left = list(routers)
        while self._now() < end:
            there = (self._kernel.links(), self._kernel.addresses())
            left = self._without_holder(left, there)
            if not left:
                break
            for router in left:
                for _to, send in senders(router, 0, destinations(router), there, self._open_socket):
                    send()
        return left

    def _without_holder(self, routers: Sequence[conf.Router], there: There) -> List[conf.Router]:
        held = {each.address for each in there[1]}
        for interface, family in {_link(router) for router in routers}:
            if (interface, family) not in self._probers:
                self._probers[interface, family] = self._prober(interface, family)
            wanted = [_address(each) for each in routers if _link(each) == (interface, family)]
            held |= {
                *find(self._probers[interface, family], [each for each in wanted if each not in held], self._wait, 1)
            }
        return [router for router in routers if _address(router) not in held]


def _link(router: conf.Router) -> Tuple[str, int]:
    """Return where somebody answers for its address."""
    return router.held[0].interface, router.family


def _address(router: conf.Router) -> str:
    return router.held[0].address


def main(path: str, run: Callable[..., Any] = subprocess.run) -> int:
    """Start keepalived, and resign in its predecessor's name to the peers of its configuration; return the exit code.

    :param run: `subprocess.run`
    """
    log = Log()
    if run(["systemctl", "start", "keepalived.service"], check=False).returncode:
        return 1
    try:
        with open(path, encoding="utf-8", errors=conf.UNDECODED) as file:
            routers = conf.routers(file.read())
        left = Predecessor(netlink.Netlink(), sockets.open_socket).resign(routers)
    except (OSError, ValueError) as error:
        log.warning(f"Priority 0 cannot be sent in the name of keepalived's predecessor: {reason(error)}.")
        return 1
    for router in left:
        log.warning(f"{router.name}: nobody has taken {_address(router)} over within {LIMIT:g} s.")
    return 0
