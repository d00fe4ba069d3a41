# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the agent says of itself: one JSON document for whoever connects to its socket.

The server is part of the process that it tells of, so it never waits for a client: who does not read is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
from typing import Any, Callable, Dict, List, Optional

from .loop import Loop
from .request_server import Answer, RequestServer

MODE = 0o660
BACKLOG = 32  # clients who wait to be let in

Report = Callable[[], Dict[str, Any]]


class Refused(Exception):
    """The socket cannot be had, or nobody answers at it; the text says why."""


class UnixSocketServer:
    """A socket in the file system at which everybody is answered, from a loop's callbacks."""

    def __init__(self, loop: Loop, path: str, answer: Answer, given: Optional[socket.socket] = None) -> None:
        """
        :param given: the socket, where a predecessor has opened it
        :raises Refused: where another daemon answers, or the path cannot be used
        """
        self.path, self.socket = path, given or listen(path)
        self.server = RequestServer(loop, self.socket, answer)

    def close(self, stays: bool = False) -> None:
        """
        :param stays: whether somebody else has the socket, too, and answers there from now on
        """
        self.server.close()
        if not stays:
            with contextlib.suppress(OSError):  # the folder may be root's; a successor clears up
                os.unlink(self.path)
        self.socket.close()


class StatusServer(UnixSocketServer):
    """Tells whoever comes, without being asked."""

    def __init__(self, loop: Loop, path: str, report: Report, given: Optional[socket.socket] = None) -> None:
        """
        :raises Refused: as for a door
        """
        super().__init__(loop, path, lambda _received, _ended: document(report()), given)


def document(found: Dict[str, Any]) -> bytes:
    """Return what is sent to those who want to know."""
    return json.dumps(found).encode() + b"\n"


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
        server.listen(BACKLOG)
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
