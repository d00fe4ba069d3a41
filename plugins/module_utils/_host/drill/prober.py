# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The epoll loop that tries an address and asks who holds it, on one grid, and writes down a
``Transcript``."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import math
import os
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._host.drill.measurement import (
    MISSED_ALONE,
    Attempt,
    Transcript,
    report,
)

# A lost SYN is sent again after 1 s (RFC 6298, 2): for this long after its time-out an attempt may still be
# answered. It has failed, but it is told apart from one that nobody ever answered.
GRACE_MS = 1500.0
# Half of the 1024 open files that a process may have nearly everywhere.
MAX_OPEN = 512


@dataclass(frozen=True)
class Goal:
    """What to wait for: exactly one holder (``holder`` by name, if given), every attempt of the last
    ``quiet_ms`` good, and at least ``successes`` good ones in a row, but not before ``minimum_ms``, nor before
    somebody else has put a file at ``path``, if given."""

    holder: str = ""
    quiet_ms: float = 0.0
    successes: int = 1
    minimum_ms: float = 0.0
    path: str = ""


@dataclass(frozen=True)
class Plan:
    address: str
    port: int
    interval_ms: float = 5.0
    timeout_ms: float = 300.0
    duration_ms: float = 10000.0
    send: bytes = b""
    names: Mapping[str, str] = field(default_factory=dict)
    settle: Optional[Goal] = None
    settle_limit_ms: float = 30000.0
    until: Optional[Goal] = None


def refusal(plan: Plan) -> str:
    """Why this cannot be probed, in one sentence; empty if it can."""
    if plan.interval_ms < 1 or plan.timeout_ms < 1:
        return "interval_ms and timeout_ms must be at least 1."
    if plan.timeout_ms / plan.interval_ms > MAX_OPEN:
        return (
            f"timeout_ms {plan.timeout_ms:g} with interval_ms {plan.interval_ms:g} needs more than "
            f"{MAX_OPEN} connections at once: probe less often or give up sooner."
        )
    known = set(plan.names.values())
    for goal in (plan.settle, plan.until):
        if goal and goal.holder and goal.holder not in known:
            return f"{goal.holder} is to hold the address, but it is not one of the members with known MACs."
    try:
        ipaddress.ip_address(plan.address)
    except ValueError:
        return f"{plan.address} is not an IP address."
    return ""


class NotSettled(Exception):
    """The address was not in order when probing should have begun."""


@dataclass
class Open:
    sock: Any
    start_ms: float
    connected: bool = False


def open_connection(address: str, port: int) -> Tuple[Any, int]:
    """Starts a connection and returns at once, with the errno of connect.

    Closing will send RST (SO_LINGER 0): hundreds of connections a second would otherwise leave as many
    ports in TIME-WAIT, for a minute each (RFC 9293, 3.6.1).
    """
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return sock, sock.connect_ex((address, port))


def _outcome(number: int) -> str:
    named = {errno.ECONNREFUSED: "refused", errno.ECONNRESET: "reset", errno.ETIMEDOUT: "timeout"}
    return named.get(number, errno.errorcode.get(number, str(number)))


class Prober:
    """One run of the loop. ``clock`` counts seconds; ``poller`` is a select.epoll."""

    def __init__(
        self,
        plan: Plan,
        asker: Any = None,
        clock: Callable[[], float] = time.monotonic,
        poller: Any = None,
        connect: Callable[[str, int], Tuple[Any, int]] = open_connection,
    ) -> None:
        self.plan, self.asker, self.clock, self.connect = plan, asker, clock, connect
        self.address = str(ipaddress.ip_address(plan.address))
        self.poller = poller or select.epoll()
        # In the order of their start. `late` have failed; they are kept to see whether they are only slow.
        self.pending: Dict[int, Open] = {}
        self.late: Dict[int, Open] = {}
        self.transcript = Transcript()
        self.last_seen: Dict[str, float] = {}
        self.last_failed = -1e9
        self.good_in_a_row = 0

    def run(self, limit_ms: float, goal: Optional[Goal]) -> Transcript:
        """Tries and asks on the grid until the goal or the limit, then waits for what is still open."""
        started = self.clock()
        due, now, step = 0.0, 0.0, self.plan.interval_ms
        if self.asker is not None:
            self.poller.register(self.asker.fileno(), select.EPOLLIN)
        while True:
            look_at = due if due < limit_ms else min(limit_ms + self.plan.timeout_ms, now + step)
            self._look(started, look_at)
            now = (self.clock() - started) * 1000.0
            if self.transcript.length_ms == 0.0 and (now >= limit_ms or self._reached(goal, now)):
                self.transcript.length_ms, self.transcript.settled = now, self._reached(goal, now)
                self.transcript.skipped += max(0, math.ceil((min(now, limit_ms) - due) / step))
                due = limit_ms = now
            if due < limit_ms and now >= due:
                self._try(now)
                # A grid point that this machine was too busy for is left out, not made up for in a burst.
                missed = int((now - due) // step)
                self.transcript.skipped += missed
                due += (missed + 1) * step
            if self.transcript.length_ms and (not self.pending or now >= limit_ms + self.plan.timeout_ms):
                return self._finish(now)

    def _look(self, started: float, look_at: float) -> None:
        """Waits until ``look_at`` for events and dates them. If we come back later than planned the
        lateness is ours: what we find then is dated as planned, or a pause of this machine would pass for
        an outage."""
        wait = started + look_at / 1000.0 - self.clock()
        events = self.poller.poll(max(0.0, wait))
        now = (self.clock() - started) * 1000.0
        self.transcript.longest_stall_ms = max(self.transcript.longest_stall_ms, now - look_at)
        now = min(now, look_at)
        for descriptor, _mask in events:
            if self.asker is not None and descriptor == self.asker.fileno():
                self._hear(now)
            else:
                self._advance(descriptor, now)
        self._expire(now)

    def _try(self, now: float) -> None:
        if self.asker is not None:
            # An interface that is down, a full queue: this question was not asked, so nobody missed it.
            with contextlib.suppress(OSError):
                self.asker.ask(self.address)
                self.transcript.asks.append(now)
        if len(self.pending) + len(self.late) >= MAX_OPEN:
            self._close(next(iter(self.late or self.pending)), now, "timeout")
        sock, number = self.connect(self.address, self.plan.port)
        if number not in (0, errno.EINPROGRESS):
            sock.close()
            self._record(now, now, _outcome(number))
            return
        self.pending[sock.fileno()] = Open(sock, now)
        self.poller.register(sock.fileno(), select.EPOLLOUT)

    def _advance(self, descriptor: int, now: float) -> None:
        attempt = self.pending.get(descriptor) or self.late.get(descriptor)
        if attempt is None:
            return
        try:
            number = attempt.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                self._close(descriptor, now, _outcome(number))
            elif not attempt.connected and self.plan.send:
                attempt.connected = True
                attempt.sock.send(self.plan.send)
                self.poller.modify(descriptor, select.EPOLLIN)
            elif attempt.connected and not attempt.sock.recv(1):
                self._close(descriptor, now, "closed")
            else:
                self._close(descriptor, now, "ok")
        except OSError as error:
            self._close(descriptor, now, _outcome(error.errno or 0))

    def _close(self, descriptor: int, now: float, outcome: str) -> None:
        late = descriptor in self.late
        attempt = self.late.pop(descriptor) if late else self.pending.pop(descriptor)
        self.poller.unregister(descriptor)
        attempt.sock.close()
        slow = late or now - attempt.start_ms > self.plan.timeout_ms
        self._record(attempt.start_ms, now, "slow" if slow and outcome == "ok" else outcome, late)

    def _record(self, start_ms: float, now: float, outcome: str, late: bool = False) -> None:
        self.transcript.attempts.append(Attempt(start_ms, now, outcome))
        if outcome == "ok":
            self.good_in_a_row += 1
        elif not late:  # a late one was counted when its time was up
            self._failed(start_ms)

    def _failed(self, start_ms: float) -> None:
        self.good_in_a_row = 0
        self.last_failed = max(self.last_failed, start_ms)

    def _expire(self, now: float) -> None:
        for descriptor, attempt in list(self.pending.items()):
            if attempt.start_ms + self.plan.timeout_ms > now:
                break
            self.late[descriptor] = self.pending.pop(descriptor)
            self._failed(attempt.start_ms)
        for descriptor, attempt in list(self.late.items()):
            if attempt.start_ms + self.plan.timeout_ms + GRACE_MS > now:
                break
            self._close(descriptor, now, "timeout")

    def _hear(self, now: float) -> None:
        for address, mac in self.asker.replies():
            if address == self.address:
                self.transcript.sightings.append((now, mac))
                self.last_seen[self.plan.names.get(mac, mac)] = now

    def _reached(self, goal: Optional[Goal], now: float) -> bool:
        if goal is None or now < max(goal.minimum_ms, goal.quiet_ms):
            return False
        if self.good_in_a_row < goal.successes or self.last_failed > now - goal.quiet_ms:
            return False
        oldest = next(iter(self.pending.values()), None)
        if oldest is not None and now - oldest.start_ms > self.plan.timeout_ms / 2:
            return False
        in_order = self.asker is None or self._held(goal, now)
        return in_order and (not goal.path or os.path.exists(goal.path))

    def _held(self, goal: Goal, now: float) -> bool:
        window = max(goal.quiet_ms, 2 * MISSED_ALONE * self.plan.interval_ms)
        holders = {name: at for name, at in self.last_seen.items() if at >= now - window}
        if len(holders) != 1 or now < window:
            return False
        name, at = holders.popitem()
        return at >= now - max(50.0, MISSED_ALONE * self.plan.interval_ms) and goal.holder in ("", name)

    def _finish(self, now: float) -> Transcript:
        for descriptor in list(self.late) + list(self.pending):
            self._close(descriptor, now, "timeout")
        if self.asker is not None:
            self.poller.unregister(self.asker.fileno())
        self.poller.close()
        return self.transcript


def unsettled(plan: Plan, seen: Transcript, holders_known: bool) -> str:
    """The sentence that says what was not in order."""
    good = sum(1 for attempt in seen.attempts if attempt.outcome == "ok")
    recent = {mac for at, mac in seen.sightings if at > seen.length_ms - 1000.0}
    held = ", ".join(sorted(plan.names.get(mac, mac) for mac in recent)) or "nobody"
    sentence = (
        f"{plan.address} port {plan.port} did not settle within {plan.settle_limit_ms / 1000.0:g} s: "
        f"{good} of {len(seen.attempts)} connections were answered"
    )
    if holders_known:
        sentence += f"; at the end it was held by {held}"
    if plan.settle is not None and plan.settle.holder:
        sentence += f", and it should have been {plan.settle.holder}"
    return sentence + "."


def probe(plan: Plan, asker: Any = None, make: Callable[..., Prober] = Prober) -> Dict[str, Any]:
    """Waits until the address is in order, if that was asked for, then probes and reports. ``asker`` is
    None where nobody can be asked who holds the address."""
    if plan.settle is not None:
        before = make(plan, asker).run(plan.settle_limit_ms, plan.settle)
        if not before.settled:
            raise NotSettled(unsettled(plan, before, asker is not None))
    return report(make(plan, asker).run(plan.duration_ms, plan.until), plan.names, asker is not None)
