# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Messages between two processes: lists of JSON over a SOCK_SEQPACKET socket. Sending never waits."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections import deque
from typing import Any, Callable, Deque, List

from .loop import READ, WRITE, Loop

MAX_MESSAGE = 1 << 16  # bytes

Message = List[Any]


class Channel:
    """One end. Messages that the other end does not take yet are queued here."""

    def __init__(
        self, loop: Loop, end: socket.socket, on_message: Callable[[Any], None], on_end: Callable[[], None]
    ) -> None:
        end.setblocking(False)
        self._loop, self._end, self._on_message, self._on_end = loop, end, on_message, on_end
        self._unsent: Deque[bytes] = deque()
        loop.watch(end.fileno(), self._ready)

    def send(self, *message: Any) -> None:
        self.post(message)

    def post(self, document: Any) -> None:
        """Send something that is no list."""
        self._unsent.append(json.dumps(document).encode())
        self._flush()

    @property
    def behind(self) -> bool:
        """Whether messages are queued because the other end does not read."""
        return bool(self._unsent)

    @property
    def has_more(self) -> bool:
        """Whether another message, or the end, has arrived."""
        return bool(self._end.fileno() >= 0 and select.select([self._end], [], [], 0)[0])

    def finish(self, timeout: float) -> None:
        """Send the queued messages, within some seconds at most, and end this direction. Receiving goes on."""
        until = time.monotonic() + timeout
        room = select.poll()
        room.register(self._end, select.POLLOUT)
        while self._unsent and time.monotonic() < until:
            room.poll(1 + 1000 * (until - time.monotonic()))
            self._flush()
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        if self._end.fileno() >= 0:
            self._loop.forget(self._end.fileno())
            self._end.close()

    def _ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & ~WRITE:
            self._receive()

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._end.send(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            self._loop.watch(self._end.fileno(), self._ready, READ | WRITE)
        except OSError:
            self._unsent.clear()  # the other process is gone, which receiving will report
        else:
            self._loop.watch(self._end.fileno(), self._ready, READ)

    def _receive(self) -> None:
        """Receive one message; others wait for the next round, so that other events have their turn."""
        try:
            data = self._end.recv(MAX_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._on_message(json.loads(data))
        else:
            self.close()
            self._on_end()
