# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The epoll loop that connects to an address and probes who holds it, at one fixed interval, and records a
``Transcript``."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import math
import os
import re
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ..._shared import series
from .lasting import Lasting
from .measurement import MISSED_ALONE, Attempt, Transcript, report

# A lost SYN is sent again after 1 s (RFC 6298, 2): for this long after its timeout an attempt may still be answered, if
# the user does not say. It has failed, but counts as slow and not as unanswered.
LATE_ANSWER_MS = 1500.0
# Half of the usual limit of 1024 open files.
MAX_OPEN = 512
NEVER_MS = -1e9
# With which status a balancer says that no server answers (RFC 9110, 15.6.3 to 15.6.5).
GATEWAY_ERROR = re.compile(rb"HTTP/\d\.\d 50[234]")
TLS_RECORD = re.compile(rb"[\x15\x16]\x03")  # an alert or a handshake (RFC 8446, 5.1)
STATUS_LINE = 16  # bytes of an answer that are read: to where the status ends, and some more


@dataclass(frozen=True)
class Goal:
    """What to wait for: exactly one holder (``holder`` by name, if given), every attempt of the last ``quiet_ms`` good,
    and at least ``successes`` good ones in a row, but not before ``minimum_ms``, nor before a file exists at ``path``,
    if given."""

    holder: str = ""
    quiet_ms: float = 0.0
    successes: int = 1
    minimum_ms: float = 0.0
    path: str = ""


@dataclass(frozen=True)
class Settings:
    """What to probe, and how."""

    address: str
    port: int
    interval_ms: float = 5.0
    timeout_ms: float = 300.0
    late_ms: float = LATE_ANSWER_MS
    duration_ms: float = 10000.0
    send: bytes = b""
    tls: bool = False  # whether only TLS is an answer
    gateway_errors_fail: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    settle: Optional[Goal] = None
    settle_limit_ms: float = 30000.0
    until: Optional[Goal] = None
    lasting: int = 0  # connections that stay open
    lasting_port: int = 0  # to which they go; 0: to that of the others


def refusal(settings: Settings) -> str:
    """Return why this cannot be probed, in one sentence; empty if it can."""
    if settings.interval_ms < 1 or settings.timeout_ms < 1:
        return "interval_ms and timeout_ms must be at least 1."
    if settings.timeout_ms / settings.interval_ms > MAX_OPEN:
        return (
            f"timeout_ms {settings.timeout_ms:g} with interval_ms {settings.interval_ms:g} needs more than "
            f"{MAX_OPEN} connections at once: probe less often or give up sooner."
        )
    if not 0 <= settings.lasting <= MAX_OPEN:
        return f"lasting is {settings.lasting}: a number from 0 to {MAX_OPEN} is required."
    known = set(settings.names.values())
    for goal in (settings.settle, settings.until):
        if goal and goal.holder and goal.holder not in known:
            return f"{goal.holder} is to hold the address, but it is not one of the members with known MACs."
    try:
        ipaddress.ip_address(settings.address)
    except ValueError:
        return f"{settings.address} is not an IP address."
    return ""


class NotSettled(Exception):
    """The goal was not reached within its limit; the text is one sentence."""


@dataclass
class Connection:
    """An attempt that has no outcome yet."""

    sock: Any
    start_ms: float
    connected: bool = False


def open_connection(address: str, port: int) -> Tuple[Any, int]:
    """Start a connection and return at once, with the errno of connect.

    Closing will send RST (SO_LINGER 0): hundreds of connections a second would otherwise leave as many ports in
    TIME-WAIT, for a minute each (RFC 9293, 3.6.1).
    """
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return sock, sock.connect_ex((address, port))


def _outcome(number: int) -> str:
    named = {errno.ECONNREFUSED: "refused", errno.ECONNRESET: "reset", errno.ETIMEDOUT: "timeout"}
    return named.get(number, errno.errorcode.get(number, str(number)))


class Prober:
    """One run of the loop.

    :param neighbours: a `NeighbourProber`; None where the holders cannot be known
    :param clock: in seconds
    :param poller: a select.epoll
    """

    def __init__(
        self,
        settings: Settings,
        neighbours: Any = None,
        clock: Callable[[], float] = time.monotonic,
        poller: Any = None,
        connect: Callable[[str, int], Tuple[Any, int]] = open_connection,
    ) -> None:
        self.settings, self.neighbours, self.clock, self.connect = settings, neighbours, clock, connect
        self.address = str(ipaddress.ip_address(settings.address))
        self.poller = poller or select.epoll()
        # In the order of their start. The `late` ones have failed, and stay open to see whether they are only slow.
        self.pending: Dict[int, Connection] = {}
        self.late: Dict[int, Connection] = {}
        self.transcript = Transcript()
        self.last_seen: Dict[str, float] = {}
        self.last_failed = NEVER_MS
        self.started = 0.0
        self.good_in_a_row = 0

    def run(self, limit_ms: float, goal: Optional[Goal]) -> Transcript:
        """Connect and probe until the goal or the limit is reached, then wait for what is still open."""
        self.started = self.clock()
        due, now, step = 0.0, 0.0, self.settings.interval_ms
        if self.neighbours is not None:
            self.poller.register(self.neighbours.fileno(), select.EPOLLIN)
        while True:
            wake_at = due if due < limit_ms else min(limit_ms + self.settings.timeout_ms, now + step)
            self._poll(wake_at)
            now = self._elapsed()
            self.transcript.longest_stall_ms = max(self.transcript.longest_stall_ms, now - wake_at)
            if self.transcript.length_ms == 0.0 and (now >= limit_ms or self._is_reached(goal, now)):
                self.transcript.length_ms, self.transcript.settled = now, self._is_reached(goal, now)
                self.transcript.skipped += max(0, math.ceil((min(now, limit_ms) - due) / step))
                due = limit_ms = now
            if due < limit_ms and now >= due:
                self._sample(now)
                # A sample that this host was too busy for is skipped, not made up for in a burst.
                missed = int((now - due) // step)
                self.transcript.skipped += missed
                due += (missed + 1) * step
            if self.transcript.length_ms and (not self.pending or now >= limit_ms + self.settings.timeout_ms):
                return self._finish(now)

    def _elapsed(self) -> float:
        """Return the milliseconds since the start."""
        return (self.clock() - self.started) * 1000.0

    def _poll(self, wake_at: float) -> None:
        """Wait until ``wake_at`` for events, and date them.

        If this host wakes up late, its events are dated as if it had been in time: a pause of this host is no outage.
        """
        events = self.poller.poll(max(0.0, (wake_at - self._elapsed()) / 1000.0))
        now = min(self._elapsed(), wake_at)
        for descriptor, _mask in events:
            if self.neighbours is not None and descriptor == self.neighbours.fileno():
                self._read_replies(now)
            else:
                self._advance(descriptor, now)
        self._expire(now)

    def _sample(self, now: float) -> None:
        """Probe the neighbours and connect. If this host stalls here, nobody knows when the packets left: skip them."""
        if len(self.pending) + len(self.late) >= MAX_OPEN:
            self._close(next(iter(self.late or self.pending)), now, "timeout")
        was_probed = self._probe_neighbours()
        sock, number = self.connect(self.address, self.settings.port)
        if self._elapsed() - now > self.settings.interval_ms:
            sock.close()
            self.transcript.skipped += 1
            return
        if was_probed:
            self.transcript.probes.append(now)
        if number not in (0, errno.EINPROGRESS):
            sock.close()
            self._record(now, now, _outcome(number))
            return
        self.pending[sock.fileno()] = Connection(sock, now)
        self.poller.register(sock.fileno(), select.EPOLLOUT)

    def _probe_neighbours(self) -> bool:
        """Return whether it was sent. With an interface down or a full queue it was not, so no member missed it."""
        if self.neighbours is None:
            return False
        with contextlib.suppress(OSError):
            self.neighbours.probe(self.address)
            return True
        return False

    def _advance(self, descriptor: int, now: float) -> None:
        attempt = self.pending.get(descriptor) or self.late.get(descriptor)
        if attempt is None:
            return
        try:
            number = attempt.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                self._close(descriptor, now, _outcome(number))
            elif not attempt.connected and self.settings.send:
                attempt.connected = True
                attempt.sock.send(self.settings.send)
                self.poller.modify(descriptor, select.EPOLLIN)
            elif attempt.connected:
                self._close(descriptor, now, self._judged(attempt.sock.recv(STATUS_LINE)))
            else:
                self._close(descriptor, now, "ok")
        except OSError as error:
            self._close(descriptor, now, _outcome(error.errno or 0))

    def _judged(self, answer: bytes) -> str:
        """Return the outcome of an attempt by the first bytes of its answer."""
        if not answer:
            return "closed"
        if self.settings.tls and not TLS_RECORD.match(answer):
            return "not TLS"
        return "unavailable" if self.settings.gateway_errors_fail and GATEWAY_ERROR.match(answer) else "ok"

    def _close(self, descriptor: int, now: float, outcome: str) -> None:
        late = descriptor in self.late
        attempt = self.late.pop(descriptor) if late else self.pending.pop(descriptor)
        self.poller.unregister(descriptor)
        attempt.sock.close()
        slow = late or now - attempt.start_ms > self.settings.timeout_ms
        self._record(attempt.start_ms, now, "slow" if slow and outcome == "ok" else outcome, late)

    def _record(self, start_ms: float, now: float, outcome: str, late: bool = False) -> None:
        self.transcript.attempts.append(Attempt(start_ms, now, outcome))
        if outcome == "ok":
            self.good_in_a_row += 1
        elif not late:  # a late one was counted at its timeout
            self._failed(start_ms)

    def _failed(self, start_ms: float) -> None:
        self.good_in_a_row = 0
        self.last_failed = max(self.last_failed, start_ms)

    def _expire(self, now: float) -> None:
        for descriptor, attempt in list(self.pending.items()):
            if attempt.start_ms + self.settings.timeout_ms > now:
                break
            self.late[descriptor] = self.pending.pop(descriptor)
            self._failed(attempt.start_ms)
        for descriptor, attempt in list(self.late.items()):
            if attempt.start_ms + self.settings.timeout_ms + self.settings.late_ms > now:
                break
            self._close(descriptor, now, "timeout")

    def _read_replies(self, now: float) -> None:
        for address, mac in self.neighbours.replies():
            if address == self.address:
                self.transcript.sightings.append((now, mac))
                self.last_seen[self.settings.names.get(mac, mac)] = now

    def _is_reached(self, goal: Optional[Goal], now: float) -> bool:
        if goal is None or now < max(goal.minimum_ms, goal.quiet_ms):
            return False
        if self.good_in_a_row < goal.successes or self.last_failed > now - goal.quiet_ms:
            return False
        oldest = next(iter(self.pending.values()), None)
        if oldest is not None and now - oldest.start_ms > self.settings.timeout_ms / 2:
            return False
        in_order = self.neighbours is None or self._is_held(goal, now)
        return in_order and (not goal.path or os.path.exists(goal.path))

    def _is_held(self, goal: Goal, now: float) -> bool:
        window = max(goal.quiet_ms, 2 * MISSED_ALONE * self.settings.interval_ms)
        holders = {name: at for name, at in self.last_seen.items() if at >= now - window}
        if len(holders) != 1 or now < window:
            return False
        name, at = holders.popitem()
        return at >= now - max(50.0, MISSED_ALONE * self.settings.interval_ms) and goal.holder in ("", name)

    def _finish(self, now: float) -> Transcript:
        for descriptor in list(self.late) + list(self.pending):
            self._close(descriptor, now, "timeout")
        if self.neighbours is not None:
            self.poller.unregister(self.neighbours.fileno())
        self.poller.close()
        return self.transcript


def unsettled(settings: Settings, seen: Transcript, holders_known: bool) -> str:
    """Return the sentence that says why the goal was not reached."""
    good = sum(1 for attempt in seen.attempts if attempt.outcome == "ok")
    recent = {mac for at, mac in seen.sightings if at > seen.length_ms - 1000.0}
    held = ", ".join(sorted(settings.names.get(mac, mac) for mac in recent)) or "nobody"
    sentence = (
        f"{settings.address} port {settings.port} did not settle within {settings.settle_limit_ms / 1000.0:g} s: "
        f"{good} of {len(seen.attempts)} connections were answered"
    )
    if holders_known:
        sentence += f"; at the end it was held by {held}"
    if settings.settle is not None and settings.settle.holder:
        sentence += f", and it should have been {settings.settle.holder}"
    return sentence + "."


def probe(settings: Settings, neighbours: Any = None, make: Callable[..., Prober] = Prober) -> Dict[str, Any]:
    """Wait for the goal to settle on, if there is one, then probe and report.

    :param neighbours: a `NeighbourProber`; None where the holders cannot be known
    :raises NotSettled: if the goal is not reached in time
    """
    if settings.settle is not None:
        before = make(settings, neighbours).run(settings.settle_limit_ms, settings.settle)
        if not before.settled:
            raise NotSettled(unsettled(settings, before, neighbours is not None))
    lasting = Lasting.open(settings.address, settings.lasting_port or settings.port, settings.lasting)
    try:
        started_at = time.time()
        seen = make(settings, neighbours).run(settings.duration_ms, settings.until)
    finally:
        ended = lasting.close()
    return {
        **report(seen, settings.names, neighbours is not None),
        "lasting": ended,
        "started_at": round(started_at, 3),
        "series": series.encode(seen.attempts, settings.interval_ms),
    }
