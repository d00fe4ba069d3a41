# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the agent says of itself: one JSON document for whoever connects to its socket.

The server is part of the VRRP process, so it never waits for a client: who does not read is dropped.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
from typing import Any, Callable, Dict, List, Optional

from .loop import MILLION, WRITE, Loop, Timer

MODE = 0o660
CLIENTS = 32  # at a time
PATIENCE = 2 * MILLION  # until a client that does not read is dropped
PAUSE = MILLION  # until the next try, when there are no descriptors left

Report = Callable[[], Dict[str, Any]]


class Refused(Exception):
    """The socket cannot be had, or nobody answers at it; the text says why."""


class Server:
    """Answers at a socket in the file system, from a loop's callbacks."""

    def __init__(self, loop: Loop, path: str, report: Report) -> None:
        """
        :raises Refused: where another daemon answers, or the path cannot be used
        """
        self._loop, self._report, self.path = loop, report, path
        self._clients: Dict[int, Client] = {}
        self._socket = listen(path)
        self._watch()

    def close(self) -> None:
        for client in list(self._clients.values()):
            client.drop()
        self._loop.forget(self._socket.fileno())
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self._socket.close()

    def _watch(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.watch(self._socket.fileno(), self._somebody_comes)

    def _somebody_comes(self, _events: int) -> None:
        """One at a time, so that many of them cannot keep a timer waiting."""
        try:
            connection, _address = self._socket.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):  # it would come again and again
                self._loop.forget(self._socket.fileno())
                self._loop.after(PAUSE, self._watch)
            return
        if len(self._clients) >= CLIENTS:
            connection.close()
            return
        connection.setblocking(False)
        Client(self._loop, connection, json.dumps(self._report()).encode() + b"\n", self._clients)


class Client:
    """Somebody who is told, and then left."""

    def __init__(self, loop: Loop, connection: socket.socket, document: bytes, others: Dict[int, Client]) -> None:
        self._loop, self._connection, self._rest, self._others = loop, connection, document, others
        self._number = connection.fileno()
        self._timer: Optional[Timer] = None
        others[self._number] = self
        self._send()
        if self._others.get(self._number) is self:
            self._timer = loop.after(PATIENCE, self.drop)
            loop.watch(self._number, self._send, WRITE)

    def drop(self) -> None:
        if self._others.pop(self._number, None):
            self._loop.forget(self._number)
            if self._timer:
                self._timer.cancel()
            self._connection.close()

    def _send(self, _events: int = WRITE) -> None:
        try:
            self._rest = self._rest[self._connection.send(self._rest) :]
        except OSError:
            self._rest = b""
        if not self._rest:
            self.drop()


def listen(path: str) -> socket.socket:
    """Return a socket at a path, in the place of one that a killed predecessor left. Raises Refused."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _clear(path)
        return _bound(path)
    except OSError as error:
        raise Refused(f"the status socket {path} cannot be had: {error.strerror}.") from error


def _bound(path: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.setblocking(False)
        server.bind(path)
        os.chmod(path, MODE)  # nobody can connect before the next line
        server.listen(CLIENTS)
    except OSError:
        server.close()
        raise
    return server


def _clear(path: str) -> None:
    """Remove what a killed predecessor left, and nothing else."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise Refused(f"{path} is no socket, but something else: remove it, or name another status_socket.")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # it is there, and busy
            pass
    raise Refused(f"another agent answers at {path}: stop it first, or name another status_socket.")


def fetch(path: str, patience: float = 5.0, request: bytes = b"") -> Dict[str, Any]:
    """Return the report of the agent that answers at a socket, or its answer to a request.

    :param patience: seconds that each step may take
    :raises Refused: where nobody answers
    """
    received: List[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(patience)
        try:
            client.connect(path)
            if request:
                client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            while not received or received[-1]:
                received.append(client.recv(65536))
            report = json.loads(b"".join(received))
            if not isinstance(report, dict):
                raise ValueError("a report is a mapping")
            return report
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise Refused(f"no agent answers at {path}: is it running?") from error
        except ValueError as error:
            raise Refused(f"what answers at {path} is no agent, or a busy one: it gave no report.") from error
        except OSError as error:
            raise Refused(f"the agent at {path} cannot be asked: {error.strerror or error}.") from error
