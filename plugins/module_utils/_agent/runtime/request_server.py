# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One-shot request/response server: reads a request, sends one reply, closes. Never blocks."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Callable, Dict, Optional, Union

from .loop import MILLION, READ, WRITE, Loop, Timer

MAX_CLIENTS = 256  # at a time; one more closes the oldest connection
CLIENT_TIMEOUT = 2 * MILLION  # for the whole exchange with a client, without the wait for a later answer
MAX_REQUEST = 1 << 16  # bytes
ACCEPT_RETRY = MILLION  # when there are no descriptors left

# Is given what sends the whole answer, and calls that later. By then the client may have gone, which does no harm.
Later = Callable[[Callable[[bytes], None]], None]
Answered = Union[bytes, Later]
# Takes what has been received so far, at first nothing, and whether the client has finished. Returns the whole answer,
# or None to wait for more.
Answer = Callable[[bytes, bool], Optional[Answered]]


class RequestServer:
    """Serves one listening socket, which its owner closes."""

    def __init__(self, loop: Loop, listener: socket.socket, answer: Answer) -> None:
        self._loop, self._listener, self._answer = loop, listener, answer
        self._clients: Dict[int, Client] = {}  # the oldest first
        self._open = True
        self._watch()

    def __len__(self) -> int:
        return len(self._clients)

    def pause(self) -> None:
        """Stop accepting for now: new clients wait in the backlog, accepted ones are answered."""
        self._open = False
        self._loop.forget(self._listener.fileno())

    def resume(self) -> None:
        self._open = True
        self._watch()

    def close(self) -> None:
        """Call before the socket is closed."""
        self.pause()
        for client in list(self._clients.values()):
            client.close()

    def _watch(self) -> None:
        if self._open:
            self._loop.watch(self._listener.fileno(), self._accept)

    def _accept(self, _events: int) -> None:
        """Accept one client at a time, so that many of them cannot delay a timer."""
        try:
            connection, _address = self._listener.accept()
        except OSError as fault:
            if fault.errno in (errno.EMFILE, errno.ENFILE):  # the socket stays readable
                self._loop.forget(self._listener.fileno())
                self._loop.after(ACCEPT_RETRY, self._watch)
            return
        if len(self._clients) >= MAX_CLIENTS:
            next(iter(self._clients.values())).close()
        connection.setblocking(False)
        Client(self._loop, connection, self._answer, self._clients)


class Client:
    """One connection, from its request to the end of the reply."""

    def __init__(self, loop: Loop, connection: socket.socket, answer: Answer, others: Dict[int, Client]) -> None:
        self._loop, self._connection, self._answer, self._others = loop, connection, answer, others
        self._number = connection.fileno()
        self._request = b""
        others[self._number] = self
        self._timer: Timer = loop.after(CLIENT_TIMEOUT, self.close)
        loop.watch(self._number, self._read)
        self._reply_if_complete(False)

    def close(self) -> None:
        if self._others.pop(self._number, None):
            self._loop.forget(self._number)
            self._timer.cancel()
            self._connection.close()

    def _read(self, _events: int) -> None:
        data = self._receive()
        if data is None:
            return
        self._request += data
        if not self._reply_if_complete(not data) and (not data or len(self._request) > MAX_REQUEST):
            self.close()

    def _reply_if_complete(self, ended: bool) -> bool:
        answer = self._answer(self._request, ended)
        if answer is None:
            return False
        if callable(answer):
            self._loop.forget(self._number)
            self._timer.cancel()
            answer(self._reply_later)
        else:
            self._reply(answer)
        return True

    def _reply(self, answer: bytes) -> None:
        self._unsent = memoryview(answer)
        self._write()

    def _reply_later(self, answer: bytes) -> None:
        if self._others.get(self._number) is self:
            self._timer = self._loop.after(CLIENT_TIMEOUT, self.close)
            self._reply(answer)

    def _write(self, _events: int = WRITE) -> None:
        try:
            self._unsent = self._unsent[self._connection.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            return self.close()
        if self._unsent:
            return self._loop.watch(self._number, self._write, WRITE)
        # Closing with unread data would send a reset, and the reply may be lost with it (RFC 9112 section 9.6).
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        return self._loop.watch(self._number, self._drain_and_close, READ)

    def _drain_and_close(self, _events: int) -> None:
        if self._receive() == b"":
            self.close()

    def _receive(self) -> Optional[bytes]:
        """Return what has arrived, nothing at the end, None if the wake-up was spurious."""
        try:
            return self._connection.recv(4096)
        except BlockingIOError:
            return None
        except OSError:
            return b""
