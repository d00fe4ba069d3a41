# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One side of a session, and one direction of its bytes: received here, sent at the other endpoint. A direction is

    free     bytes are sent at once. While both directions are free, ``forward`` is set and ``event_loop`` moves them
    held     the other endpoint did not take all: the rest is pending, and nothing more is read until it is sent.
             So a session uses the memory of one read at most, and TCP makes the sender wait
    spliced  free or held, but through a pipe: bulk data never enter this process
    shut     the sender has finished, and the other endpoint's sending side was shut down

The other direction is not affected: a connection may stay half-closed for as long as both sides like.
"""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
from socket import SocketType
from typing import Any, Optional

from .event_loop import BOTH_WAYS, ERR, LARGE_READ, NOT_FAST, OUT, PRI, RDHUP, SIZE, Handler
from .splice import Pipe

# The states of a session, see ``session``.
GREETING, QUEUED, CONNECTING, WAITING = "greeting", "queued", "connecting", "waiting"
RELAYING, OVER = "relaying", "over"
LAST, CAREFUL = 1, 2  # a short read is the last one; or only an empty one is
MSG_MORE = socket.MSG_MORE  # so that the last data and the FIN are one packet
SPLICE_AFTER = 4  # large reads until a direction is spliced
SIOCOUTQ = 0x5411  # linux/sockios.h: how many bytes the peer has not acknowledged


class Endpoint(Handler):
    """One side of a session."""

    __slots__ = (
        "session",
        "socket",
        "descriptor",
        "receive",
        "forward",
        "other",
        "count",
        "pending",
        "unacked",
        "pipe",
        "large_reads",
        "ending",
        "shut",
        "watches_out",
    )

    def __init__(self, session: Any, connection: SocketType) -> None:
        self.session, self.socket = session, connection
        self.descriptor = connection.fileno()
        self.receive = connection.recv
        self.forward: Any = None  # the other endpoint's ``send`` while both directions are free
        self.other: Any = None
        self.count = 0  # bytes received since the session last counted them
        self.pending = b""  # bytes that the other endpoint has not taken yet
        self.unacked = 0  # at the last check: bytes pending here and in the other socket's send buffer
        self.pipe: Optional[Pipe] = None
        self.large_reads = 0  # consecutive reads of LARGE_READ or more
        self.ending = 0  # LAST, CAREFUL
        self.shut = False
        self.watches_out = False  # whether it is registered for EPOLLOUT

    def held(self) -> bool:
        return bool(self.pending or (self.pipe and self.pipe.held))

    def progressed(self) -> bool:
        """Return whether the other side has taken some of the waiting bytes since the last call.

        EPOLLOUT comes only after a good part of the buffer is free, which takes minutes on a slow line.
        """
        before = self.unacked
        queued = struct.unpack("i", fcntl.ioctl(self.other.descriptor, SIOCOUTQ, bytes(4)))[0]
        self.unacked = queued + len(self.pending) + (self.pipe.held if self.pipe else 0)
        return self.unacked != before

    def ready(self, events: int) -> None:
        if self.session.state == GREETING:
            self.session.greet()
            return
        if events & NOT_FAST:
            self._expect_end(events)
        if events & OUT and self.other.held():
            self.other.flush()
        if events & ~OUT:
            self.transfer()
        if events & ERR:
            self.session.reset()
        elif not self.ending:
            self.session.enable_fast_path()

    def transfer(self) -> None:
        """Forward what has arrived, as much as is fair to other sessions."""
        if self.session.state != RELAYING or self.shut or self.pending:
            return None
        if self.ending == CAREFUL:
            self.release_pipe()  # splice stops at urgent data
        elif self.large_reads >= SPLICE_AFTER:
            self._acquire_pipe()
        if self.pipe:
            return self._splice(self.pipe)
        while True:
            try:
                data = self.receive(SIZE)
            except OSError as fault:
                return self.unreadable(fault)
            size = len(data)
            last = not data or size < SIZE and self.ending == LAST
            if data:
                self.count += size
                self.pass_on(data, MSG_MORE if last else 0)
            if self.pending or self.session.state != RELAYING:
                return None
            if last:
                return self._shut()
            if size >= LARGE_READ:
                return self._note_large_read(size)
            if not self.ending:
                return None

    def _expect_end(self, events: int) -> None:
        """Note whether a short read is the last one, or may not be."""
        ended = events & (RDHUP | PRI | ERR) == RDHUP  # the FIN has arrived, and all data before it
        self.ending = LAST if ended and self.ending != CAREFUL else CAREFUL

    def flush(self) -> None:
        """Send what was held, and what has arrived since."""
        if self.pipe:
            self._drain(self.pipe)
        elif self.pending:
            data, self.pending = self.pending, b""
            self.pass_on(data)
        if not self.held():
            self.transfer()

    def slow_path(self, data: bytes, sent: int) -> None:
        """Continue where the loop stops: at the end, after a large read, or if not all bytes were sent."""
        if not data:
            self._shut()
            return
        if sent < len(data):
            self._hold(data[sent:])
        self._note_large_read(len(data))

    def unreadable(self, fault: OSError) -> None:
        if not isinstance(fault, BlockingIOError):
            self.session.reset()

    def unwritable(self, fault: OSError, data: bytes) -> None:
        self.count += len(data)
        if isinstance(fault, BlockingIOError):
            self._hold(data)
        else:
            self.session.reset()

    def release_pipe(self) -> None:
        """Return the pipe, which another session may use."""
        self.large_reads = 0
        if self.pipe and not self.pipe.held:
            self.session.loop.pipes.give(self.pipe)
            self.pipe = None
            self.session.enable_fast_path()

    def pass_on(self, data: bytes, flags: int = 0) -> None:
        try:
            sent = self.other.socket.send(data, flags)
        except OSError as fault:
            if isinstance(fault, BlockingIOError):
                return self._hold(data)
            return self.session.reset()
        return self._hold(data[sent:]) if sent < len(data) else None

    def _hold(self, data: bytes) -> None:
        self.pending = data
        self._wait_for_room()

    def _wait_for_room(self) -> None:
        """Wait until the other endpoint can send more."""
        self.session.disable_fast_path()
        other = self.other
        if not other.watches_out:
            other.watches_out = True
            self.session.loop.watch_more(other.descriptor, BOTH_WAYS)

    def _splice(self, pipe: Pipe) -> None:
        if pipe.held:
            return None
        try:
            moved = pipe.fill(self.descriptor)
        except OSError as fault:
            return self.unreadable(fault)
        if not moved:  # the end, or urgent data
            self.ending = CAREFUL
            return self.transfer()
        self.count += moved
        self._drain(pipe)
        if not pipe.held:
            self._defer()
        return None

    def _drain(self, pipe: Pipe) -> None:
        try:
            pipe.drain(self.other.descriptor)
        except OSError:
            return self.session.reset()
        return self._wait_for_room() if pipe.held else None

    def _note_large_read(self, size: int) -> None:
        """After a large read there may be more; after several of them a pipe is worthwhile."""
        self.large_reads += 1
        if size == SIZE or self.ending or self.large_reads == SPLICE_AFTER:
            self._defer()

    def _defer(self) -> None:
        """Continue after the other sessions have had their turn."""
        self.session.loop.deferred.append(self.transfer)

    def _acquire_pipe(self) -> None:
        if self.pipe:
            return
        with contextlib.suppress(OSError):  # without descriptors it goes on without a pipe
            self.pipe = self.session.loop.pipes.take()
            self.session.disable_fast_path()

    def _shut(self) -> None:
        """Shut down the other endpoint's sending side."""
        self.shut = True
        if self.other.shut:
            return self.session.finish()
        try:
            self.other.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.session.reset()
        return None
