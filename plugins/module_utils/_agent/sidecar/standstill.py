# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ends a VRRP router that stands still.

One that is stopped, or waits for a lock, exists and keeps its addresses. The others hear nothing of it and take them
over: then two hosts have them. Nothing is asked of the router. The kernel knows whether it reads what it is sent: each
Advertisement of the others waits in its socket until then. So a router that is only late is one whose queue becomes
shorter, and nobody who is alone on the link is found to stand still: it is sent nothing.

- One that holds addresses is ended once another host answers for one of them, and not before: nobody else might.
- One that holds none is ended after half a minute: it would not take over.

What this process is late by itself counts for nothing (`checks.patience`).
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from ..checks import patience
from ..checks.patience import Patience
from ..keepalived import conf, peers
from ..keepalived.resignation import left_by
from ..keepalived.senders import reason
from ..net.neighbours import NeighbourProber
from ..runtime.background import SUCCESS, Background
from ..runtime.log import Log
from ..runtime.loop import MILLION, Loop

LOOK_EVERY = MILLION // 4  # microseconds, while every socket is read
STANDS_STILL = MILLION // 2  # nothing is read for so long
IDLE = 60  # times that
ASK_FOR = 3 * MILLION
END = ".end"  # what the name of the FIFO ends with by which a container's first process is told to end its program
YES = b"yes"


class Seen(NamedTuple):
    """Sockets that nobody has read since the wait began, and how much waits in each. Pure."""

    unread: Dict[int, int] = {}
    wait: Optional[Patience] = None
    times: int = 0  # that the wait was over

    def look(self, unread: Dict[int, int], now: int) -> Seen:
        """Return what is seen now. A socket whose queue is shorter than before was read."""
        still = {inode: unread[inode] for inode, size in self.unread.items() if unread.get(inode, 0) >= size}
        if not still or not self.wait:
            return Seen(unread, patience.begin(STANDS_STILL, now) if unread else None)
        if self.wait.is_over:
            return Seen(still, patience.begin(STANDS_STILL, now), self.times + 1)
        return Seen(still, patience.woken(self.wait, now), self.times)

    @property
    def is_over(self) -> bool:
        """Whether they were not read for another time as long as a router that serves may take."""
        return bool(self.wait and self.wait.is_over)


class Standstill:
    """Watches the router beside the sidecar."""

    def __init__(
        self,
        loop: Loop,
        log: Log,
        routers: Callable[[], Sequence[conf.Router]],
        kernel: Callable[[], Any],
        unread: Callable[[], Dict[int, int]],
        end: Callable[[], None],
        others: Callable[[Iterable[conf.Router]], bool],
    ) -> None:
        """
        :param routers: returns the Virtual Routers of the configuration. Raises OSError
        :param kernel: returns a `netlink.Netlink`
        :param unread: `raw_sockets.read_unread`
        :param end: ends the router. Raises OSError
        :param others: whether another host holds an address of one of some Virtual Routers; it takes its time
        """
        self._loop, self._log, self._routers, self._kernel = loop, log, routers, kernel
        self._unread, self._end, self._others = unread, end, others
        self._seen = Seen()
        self._asks = False

    def start(self) -> None:
        self._look()

    def _look(self) -> None:
        now = self._loop.now()
        self._seen = self._seen.look(self._unread(), now)
        if self._seen.is_over:
            self._judge()
        wait = self._seen.wait
        self._loop.at(wait.wake if wait else now + LOOK_EVERY, self._look)

    def _judge(self) -> None:
        try:
            kernel = self._kernel()
            held = [left.router for left in left_by(self._routers(), kernel.links(), kernel.addresses())]
            if held:
                self._ask(held)
            elif self._seen.times >= IDLE:
                self._execute("and holds no address")
        except (OSError, ValueError) as error:
            self._log.fault("standstill", f"It is not known what the router holds: {reason(error)}.")

    def _ask(self, held: List[conf.Router]) -> None:
        """Ask in a process of its own who else holds them. The answer counts while nobody has read anything."""
        if self._asks:
            return
        asked = self._seen.unread.keys()

        def answered(result: bytes, ending: str) -> None:
            self._asks = False
            if ending == SUCCESS and result == YES and asked & self._seen.unread.keys():
                self._execute(f"and another host holds {', '.join(router.name for router in held)}")

        Background(self._loop, "holder", lambda: YES if self._others(held) else b"", answered, ASK_FOR)
        self._asks = True

    def _execute(self, why: str) -> None:
        self._seen = Seen()
        try:
            self._end()
        except OSError as error:
            self._log.fault("standstill", f"The router stands still, and cannot be ended: {reason(error)}.")
            return
        self._log.warning(f"The router has read nothing for a while, {why}: it is ended.")


def is_held_elsewhere(routers: Iterable[conf.Router]) -> bool:
    """Whether another host answers for the first address of one of these Virtual Routers. The own kernel does not."""
    for router in routers:
        held = router.held[0]
        family = 6 if ":" in held.address else 4
        prober = NeighbourProber(held.interface, family)
        if peers.find(prober, [held.address], tries=1):
            return True
    return False


def ending(fifo: str) -> Callable[[], None]:
    """Return what tells the first process of a container, which holds a FIFO, to end its program."""

    def end() -> None:
        descriptor = os.open(f"{fifo}{END}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(descriptor, b"end\n")
        finally:
            os.close(descriptor)

    return end
