# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One side of a session, and the way that its bytes go: in at this end, out at the other. A way is

    free     what comes is sent on at once. While both ways are, ``forward`` is set and the loop does it (see ``relay``)
    held     the other end does not take all of it: the rest is kept, and nothing more is read until that has gone.
             So no session has more than one read of memory, and TCP makes the sender wait
    spliced  free or held, but through a pipe: bytes that come in great numbers are never seen by this process
    shut     the sender said that this was all, and the other end was told

A way that is shut leaves the other one as it is: half-closed, for as long as both sides like.
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

CONNECTING, WAITING, RELAYING, OVER = "connecting", "waiting", "relaying", "over"  # sessions, see ``session``
LAST, CAREFUL = 1, 2  # a short read is the last one; nothing is the last one but the end itself
MSG_MORE = socket.MSG_MORE  # so that what is sent and the FIN that follows are one packet
SPLICE_AFTER = 4  # bulky reads until a way is spliced
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
        self.forward: Any = None  # the other end's ``send`` while both ways are free
        self.other: Any = None
        self.count = 0  # bytes that came since somebody looked
        self.pending = b""  # what the other end has not taken yet
        self.unacked = 0  # bytes, when somebody looked while some were held; those in the other's socket included
        self.pipe: Optional[Pipe] = None
        self.large_reads = 0  # how often much has come at once
        self.ending = 0  # LAST, CAREFUL
        self.shut = False
        self.watches_out = False  # whether it is registered for EPOLLOUT

    def held(self) -> bool:
        return bool(self.pending or (self.pipe and self.pipe.held))

    def progressed(self) -> bool:
        """Return whether the other side has taken some of what waits for it since this was last asked.

        The kernel tells that there is room only after a good part of its buffer has gone, minutes on a slow line.
        """
        before = self.unacked
        queued = struct.unpack("i", fcntl.ioctl(self.other.descriptor, SIOCOUTQ, bytes(4)))[0]
        self.unacked = queued + len(self.pending) + (self.pipe.held if self.pipe else 0)
        return self.unacked != before

    def ready(self, events: int) -> None:
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
        """Pass on what has come, as much of it as is fair to others."""
        if self.session.state != RELAYING or self.shut or self.pending:
            return None
        if self.ending == CAREFUL:
            self.release_pipe()  # splice does not get past urgent data
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
        """Note that a read that is short may not be, or must be, the last one."""
        ended = events & (RDHUP | PRI | ERR) == RDHUP  # the FIN is here, and all that came before
        self.ending = LAST if ended and self.ending != CAREFUL else CAREFUL

    def flush(self) -> None:
        """Pass on what was held, and what has come since."""
        if self.pipe:
            self._drain(self.pipe)
        elif self.pending:
            kept, self.pending = self.pending, b""
            self.pass_on(kept)
        if not self.held():
            self.transfer()

    def slow_path(self, data: bytes, sent: int) -> None:
        """Go on where the loop leaves off: at the end of all, with a great deal, or more than the other end took."""
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
        """Do without the pipe, which somebody else may have."""
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
        """Have the other end tell when it takes more."""
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
        if not moved:  # this is the end, or urgent data before it
            self.ending = CAREFUL
            return self.transfer()
        self.count += moved
        self._drain(pipe)
        if not pipe.held:
            self._turn_later()
        return None

    def _drain(self, pipe: Pipe) -> None:
        try:
            pipe.drain(self.other.descriptor)
        except OSError:
            return self.session.reset()
        return self._wait_for_room() if pipe.held else None

    def _note_large_read(self, size: int) -> None:
        """Much has come at once: there may be more, and if that is so time and again then a pipe is worth its while."""
        self.large_reads += 1
        if size == SIZE or self.ending or self.large_reads == SPLICE_AFTER:
            self._turn_later()

    def _turn_later(self) -> None:
        """There is more, but others have their turn first."""
        self.session.loop.deferred.append(self.transfer)

    def _acquire_pipe(self) -> None:
        if self.pipe:
            return
        with contextlib.suppress(OSError):  # no more descriptors: it goes on as it is
            self.pipe = self.session.loop.pipes.take()
            self.session.disable_fast_path()

    def _shut(self) -> None:
        """Tell the other end that this was all."""
        self.shut = True
        if self.other.shut:
            return self.session.finish()
        try:
            self.other.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.session.reset()
        return None
