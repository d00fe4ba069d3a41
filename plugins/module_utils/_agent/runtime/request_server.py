# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Those who come to a socket with a question, get one answer and are left. None of them is ever waited for."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Callable, Dict, Optional

from .loop import MILLION, READ, WRITE, Loop, Timer

MOST = 256  # at a time; when another one comes, whoever has been here longest goes
CLIENT_TIMEOUT = 2 * MILLION  # until somebody who asks or listens too slowly is left
LONGEST = 1 << 16  # bytes of a question
PAUSE = MILLION  # until the next try, when there are no descriptors left

# Takes what has been received, first nothing, and whether that was all; returns the whole answer, or None while more is
# wanted.
Answer = Callable[[bytes, bool], Optional[bytes]]


class RequestServer:
    """All who are there at one listening socket, which stays its owner's."""

    def __init__(self, loop: Loop, door: socket.socket, answer: Answer) -> None:
        self._loop, self._door, self._answer = loop, door, answer
        self._inside: Dict[int, Client] = {}  # in the order in which they came
        self._open = True
        self._watch()

    def __len__(self) -> int:
        return len(self._inside)

    def pause(self) -> None:
        """Let nobody else in for now: whoever comes waits before the socket, and whoever is inside is answered."""
        self._open = False
        self._loop.forget(self._door.fileno())

    def resume(self) -> None:
        """Let them in again."""
        self._open = True
        self._watch()

    def close(self) -> None:
        """To be called before the socket is closed."""
        self.pause()
        for visitor in list(self._inside.values()):
            visitor.leave()

    def _watch(self) -> None:
        if self._open:
            self._loop.watch(self._door.fileno(), self._somebody_comes)

    def _somebody_comes(self, _events: int) -> None:
        """One at a time, so that many of them cannot keep a timer waiting."""
        try:
            connection, _address = self._door.accept()
        except OSError as fault:
            if fault.errno in (errno.EMFILE, errno.ENFILE):  # it would come again and again
                self._loop.forget(self._door.fileno())
                self._loop.after(PAUSE, self._watch)
            return
        if len(self._inside) >= MOST:
            next(iter(self._inside.values())).leave()
        connection.setblocking(False)
        Client(self._loop, connection, self._answer, self._inside)


class Client:
    """One of them: asks, is answered, goes."""

    def __init__(self, loop: Loop, connection: socket.socket, answer: Answer, others: Dict[int, Client]) -> None:
        self._loop, self._connection, self._answer, self._others = loop, connection, answer, others
        self._number = connection.fileno()
        self._question = b""
        others[self._number] = self
        self._timer: Timer = loop.after(CLIENT_TIMEOUT, self.leave)
        loop.watch(self._number, self._listen)
        self._answer_if_enough(False)

    def leave(self) -> None:
        if self._others.pop(self._number, None):
            self._loop.forget(self._number)
            self._timer.cancel()
            self._connection.close()

    def _listen(self, _events: int) -> None:
        data = self._receive()
        if data is None:
            return
        self._question += data
        if not self._answer_if_enough(not data) and (not data or len(self._question) > LONGEST):
            self.leave()

    def _answer_if_enough(self, ended: bool) -> bool:
        answer = self._answer(self._question, ended)
        if answer is None:
            return False
        self._rest = answer
        self._say()
        return True

    def _say(self, _events: int = WRITE) -> None:
        try:
            self._rest = self._rest[self._connection.send(self._rest) :]
        except BlockingIOError:
            pass
        except OSError:
            return self.leave()
        if self._rest:
            return self._loop.watch(self._number, self._say, WRITE)
        # What is closed with something unread is reset, and the answer may be lost with it (RFC 9112 section 9.6).
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        return self._loop.watch(self._number, self._see_off, READ)

    def _see_off(self, _events: int) -> None:
        if self._receive() == b"":
            self.leave()

    def _receive(self) -> Optional[bytes]:
        """Return what has come, nothing at the end, None when it was a false alarm."""
        try:
            return self._connection.recv(4096)
        except BlockingIOError:
            return None
        except OSError:
            return b""
