# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status socket: sends the report, one JSON document, to every client that connects.

The server runs inside the process that it reports on, so it never waits for a client.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
from typing import Any, Callable, Dict, List, Optional

from ..config import reports
from .loop import Loop
from .request_server import Answer, RequestServer

MODE = 0o660
BACKLOG = 32
LARGEST = 1 << 26  # bytes of a report; ten thousand servers take some megabytes

Report = Callable[[], Dict[str, Any]]


class Refused(Exception):
    """The socket cannot be opened, or nothing answers at it; the text says why."""


class InUse(Refused):
    """Another daemon answers at the path."""


class UnixSocketServer:
    """A request server at a path in the file system."""

    def __init__(self, loop: Loop, path: str, answer: Answer, inherited: Optional[socket.socket] = None) -> None:
        """
        :param inherited: the socket, if the previous version has opened it
        :raises Refused: if it cannot be used; InUse: if another daemon answers at the path
        """
        self.path, self.socket = path, inherited or listen(path)
        self.server = RequestServer(loop, self.socket, answer)

    def close(self) -> None:
        """Close it, and remove the path."""
        self.server.close()
        with contextlib.suppress(OSError):  # the folder may be root's; the next daemon removes it
            os.unlink(self.path)
        self.socket.close()


class StatusServer(UnixSocketServer):
    """Sends the report without reading a request."""

    def __init__(self, loop: Loop, path: str, report: Report) -> None:
        super().__init__(loop, path, lambda _received, _ended: document(report()))


def document(content: Dict[str, Any]) -> bytes:
    """Return a report or an answer as it is sent."""
    return json.dumps(content).encode() + b"\n"


def listen(path: str) -> socket.socket:
    """Return a socket at a path, replacing one that a killed daemon left. Raises Refused or InUse."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _remove_stale(path)
        return _bound(path)
    except OSError as error:
        raise Refused(f"the status socket {path} cannot be had: {error.strerror}.") from error


def _bound(path: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.setblocking(False)
        server.bind(path)
        os.chmod(path, MODE)  # no client can connect before listen
        server.listen(BACKLOG)
    except OSError:
        server.close()
        raise
    return server


def _remove_stale(path: str) -> None:
    """Remove a socket that a killed daemon left, and nothing else."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise Refused(f"{path} is not a socket, but something else: remove it, or name another status_socket.")
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
    raise InUse(f"another agent answers at {path}: stop it first, or name another status_socket.")


def fetch(path: str, timeout: float = 5.0, request: bytes = b"") -> Dict[str, Any]:
    """Return the report of the agent that answers at a socket, or its answer to a request.

    :param timeout: seconds for each step
    :raises Refused: if nothing answers
    """
    received: List[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(timeout)
        try:
            client.connect(path)
            if request:
                client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            while not received or received[-1]:
                received.append(client.recv(65536))
                if sum(map(len, received)) > LARGEST:
                    raise ValueError("no report is that long")
            return _judged(b"".join(received), path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise Refused(f"no agent answers at {path}: is it running?") from error
        except (ValueError, RecursionError) as error:
            raise Refused(f"what answers at {path} is not an agent, or is a busy one: it gave no report.") from error
        except OSError as error:
            raise Refused(f"the agent at {path} cannot be asked: {error.strerror or error}.") from error


def _judged(answer: bytes, path: str) -> Dict[str, Any]:
    """Return an answer. Raises ValueError where it is none, and Refused where its parts are others than a report's."""
    report = json.loads(answer)
    if not isinstance(report, dict):
        raise ValueError("a report is a mapping")
    for fault in reports.faults(report):
        raise Refused(f"what answers at {path} is an agent of another version, or none: {fault}")
    return report


def report_at(path: str, daemon: str) -> Dict[str, Any]:
    """Return the report of a daemon of the agent that answers at a socket; an empty one if none of that kind does."""
    try:
        report = fetch(path)
    except Refused:
        return {}
    return report if reports.KEYS[daemon] in report else {}
