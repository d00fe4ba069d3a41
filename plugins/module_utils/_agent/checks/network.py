# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks an address and port without blocking: a connection is enough, or a dialogue follows.

A dialogue is a generator. It yields the events that it waits for, and returns the detail for the outcome; so it reads
from top to bottom although thousands may run at once.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Callable, Generator, List, Optional

from ..runtime.loop import READ, WRITE, Loop, Timer
from . import patience
from .outcome import Done, Outcome, Probe, in_words, seconds

Steps = Generator[int, None, str]
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST
# This host has no more sockets, ports or memory, which says nothing of the target.
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EAGAIN)


class BadResponse(Exception):
    """The response is not that of a working server; the text says why."""


class Stream:
    """A connection whose operations yield the events that they wait for."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.missing = "no connection"  # what has not arrived yet, for the detail

    def expect(self, what: str) -> None:
        self.missing = what

    def connected(self) -> Generator[int, None, None]:
        yield WRITE
        fault = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if fault:
            raise OSError(fault, os.strerror(fault))
        # The kernel may choose the very port as the local one, and TCP lets a socket connect to itself.
        if self.connection.getsockname() == self.connection.getpeername():
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    def send(self, data: bytes) -> Generator[int, None, None]:
        while data:
            try:
                data = data[self.connection.send(data) :]
            except BlockingIOError:
                yield WRITE

    def receive(self, size: int) -> Generator[int, None, bytes]:
        """Return at most ``size`` bytes, none at the end."""
        while True:
            try:
                return self.connection.recv(size)
            except BlockingIOError:
                yield READ


Dialogue = Callable[[Stream], Steps]


def connect_only(stream: Stream) -> Steps:
    """A plain TCP check. It closes with RST, as haproxy does, so that no TIME_WAIT remains."""
    stream.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    yield from ()
    return "connected"


def after(greeting: bytes, dialogue: Dialogue) -> Dialogue:
    """Return a dialogue that begins with a greeting."""

    def greet(stream: Stream) -> Steps:
        yield from stream.send(greeting)
        return (yield from dialogue(stream))

    return greet


def connect(address: str, port: int) -> socket.socket:
    """Return a socket that is connecting to an IP address; a name is refused, because resolving it blocks."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    socket.inet_pton(family, address)
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.setblocking(False)
    fault = connection.connect_ex((address, port))
    if fault not in (0, errno.EINPROGRESS):
        connection.close()
        raise OSError(fault, os.strerror(fault))
    return connection


class NetworkProbe(Probe):
    """One connection per run; ``timeout`` (microseconds) covers all of it, without what this process is late by.

    With a ``connect_timeout`` a server that cannot be reached is known sooner than one that does not answer.
    """

    def __init__(
        self,
        loop: Loop,
        address: str,
        port: int,
        timeout: int,
        dialogue: Dialogue = connect_only,
        connect: Callable[[str, int], socket.socket] = connect,
        connect_timeout: int = 0,
    ) -> None:
        self._loop, self._address, self._port, self._timeout = loop, address, port, timeout
        self._connect_timeout = min(connect_timeout, timeout)
        self._dialogue, self._connect = dialogue, connect
        self._stream: Optional[Stream] = None
        self._timer: Optional[Timer] = None
        self._began = 0

    @property
    def port(self) -> int:
        return self._port

    def start(self, done: Done) -> None:
        self._done, self._began = done, self._loop.now()
        try:
            self._stream = Stream(self._connect(self._address, self._port))
        except (OSError, ValueError) as fault:
            return self._end(False, in_words(fault), known=getattr(fault, "errno", None) not in SHORTAGES)
        self._limit = self._connect_timeout or self._timeout
        self._wait(patience.begin(self._limit, self._began))
        self._steps = self._converse(self._stream)
        return self._step()

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._stream:
            self._steps.close()
            self._loop.forget(self._stream.connection.fileno())
            self._stream.connection.close()
        self._timer = self._stream = None

    def _converse(self, stream: Stream) -> Steps:
        yield from stream.connected()
        self._wait_for_the_rest()
        return (yield from self._dialogue(stream))

    def _wait_for_the_rest(self) -> None:
        if self._timer and self._limit < self._timeout:
            self._timer.cancel()
            self._limit = self._timeout
            self._wait(patience.begin(self._timeout - self._waiting.waited, self._loop.now()))

    def _step(self, _ready: int = 0) -> None:
        if self._stream is None:
            return
        try:
            events = next(self._steps)
        except StopIteration as end:
            self._end(True, end.value)
        except (BadResponse, OSError, ValueError) as fault:
            self._end(False, in_words(fault))
        else:
            self._loop.watch(self._stream.connection.fileno(), self._step, events)

    def _wait(self, wait: patience.Patience) -> None:
        self._waiting = wait
        self._timer = self._loop.at(wait.wake, self._woken)

    def _woken(self) -> None:
        wait = patience.woken(self._waiting, self._loop.now())
        if not wait.is_over:
            return self._wait(wait)
        missing = self._stream.missing if self._stream else "no answer"
        return self._end(False, f"{missing} within {seconds(self._limit)}")

    def _end(self, success: bool, detail: str, known: bool = True) -> None:
        self.stop()
        self._done(Outcome(success, detail, self._loop.now() - self._began, known=known))


class Sequence(Probe):
    """Several connections, one after the other. The first one that fails ends the run."""

    def __init__(self, probes: List[NetworkProbe]) -> None:
        self._probes = probes
        self._current = 0
        self._duration = 0

    def start(self, done: Done) -> None:
        self._done, self._current, self._duration = done, 0, 0
        self._probes[0].start(self._take)

    def stop(self) -> None:
        self._probes[self._current].stop()

    def _take(self, outcome: Outcome) -> None:
        self._duration += outcome.duration
        probe = self._probes[self._current]
        if outcome.success and probe is not self._probes[-1]:
            self._current += 1
            self._probes[self._current].start(self._take)
        else:
            self._done(outcome._replace(detail=f"port {probe.port}: {outcome.detail}", duration=self._duration))
