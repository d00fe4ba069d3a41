# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Upgrade of the running router: a new process takes over between two Advertisements.

The new program starts beside the old one and prepares everything before it requests the handover. The old process then
sends its state, sends nothing else to any router, and ends when the new one commits. Until then nothing is given up:
a new version that fails costs no more than a line in the log.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from typing import Any, Callable, Dict, Mapping, MutableMapping, NoReturn, Optional

from ..runtime import upgrade_state
from ..runtime.loop import MILLION, Loop

READY_TIMEOUT = 30 * MILLION  # until a new version must be ready
COMMIT_TIMEOUT = 1.0  # seconds until it must have committed: neither process advertises meanwhile
READY, COMMITTED = "ready", "taken"  # what the new process sends, a line each, after its process number


class UpgradeAborted(Exception):
    """The old process goes on without this one."""


class NewProcess:
    """The new process, as the old one sees it."""

    def __init__(
        self,
        loop: Loop,
        environ: Mapping[str, str],
        state: Dict[str, Any],
        on_ready: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        """Start it. Raises OSError.

        :param environ: the environment that this process was started with
        :param state: what it must know before it is ready, with ``door``: the status socket's path and descriptor
        :param on_ready: called once the new process is ready; must call ``commit``
        :param on_failure: called instead, with the reason why it will not get ready
        """
        self.pid = 0  # until the new process has sent it
        self._child = 0  # which becomes the new process, unless it hangs before
        self._loop, self._on_ready, self._on_failure = loop, on_ready, on_failure
        self._received = b""
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        with theirs:
            self._start(environ, {**state, "channel": theirs.fileno()})
        loop.watch(self._channel.fileno(), self._receive)
        self._timeout = loop.after(READY_TIMEOUT, lambda: self._fail("it is not ready in time"))

    def _start(self, environ: Mapping[str, str], state: Dict[str, Any]) -> None:
        """It inherits three descriptors, but neither the real-time priority nor the locked memory."""
        descriptors = (state["channel"], state["door"][1])
        own = {name: value for name, value in environ.items() if name != "WATCHDOG_PID"}  # names this process
        try:
            with upgrade_state.passed_on(state, descriptors, own) as whole:
                self._child = os.posix_spawn(sys.executable, upgrade_state.command_line(), whole)
        except OSError:
            self._channel.close()
            raise
        upgrade_state.reap(self._loop, self._child, self._on_reaped)

    def _on_reaped(self) -> None:
        """The child has started the new process, and ended: see ``OldProcess.of``."""
        self._child = 0

    def _receive(self, _events: int) -> None:
        try:
            data = self._channel.recv(4096)
        except OSError:
            data = b""
        self._received += data
        lines = self._received.decode().split("\n")[:-1]
        self.pid = int(lines[0]) if lines else 0
        if not data:
            self._fail("it has ended, and the log says why")
        elif READY in lines:
            self._loop.forget(self._channel.fileno())
            self._timeout.cancel()
            self._on_ready()

    def _fail(self, why: str) -> None:
        self.close()
        self._on_failure(why)

    def commit(self, known: Dict[str, Any]) -> bool:
        """Let it go on from this state; return whether it does. If it does not, it is killed."""
        with contextlib.suppress(OSError):
            self._channel.settimeout(COMMIT_TIMEOUT)
            self._channel.sendall(json.dumps(known).encode() + b"\n")
            if self._channel.recv(64) == f"{COMMITTED}\n".encode():
                self._channel.close()
                return True
        self.close()
        return False

    def close(self) -> None:
        """Abort: two routers with the same addresses would be worse than no upgrade."""
        self._timeout.cancel()
        self._loop.forget(self._channel.fileno())
        for pid in filter(None, (self.pid, self._child)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._channel.close()


class OldProcess:
    """The old process, as the new one sees it."""

    def __init__(self, state: Dict[str, Any]) -> None:
        self.text: str = state["config"]  # of the configuration that is in force
        self.status_path: str = state["door"][0]
        self.status_socket = upgrade_state.socket_of(state["door"][1])
        self._channel = upgrade_state.socket_of(state["channel"])
        self._channel.setblocking(True)
        self._send(str(os.getpid()))

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> Optional[OldProcess]:
        """Return the old process that started this one, None if this is no upgrade."""
        state = upgrade_state.load(environ)
        if state is None:
            return None
        if os.fork():
            # systemd notices the end of a main process only if it is its own child, as an orphan is.
            os._exit(0)
        return cls(state)

    def request_handover(self) -> Dict[str, Any]:
        """Report that everything is ready; return the state of the old process. Raises UpgradeAborted."""
        self._send(READY)
        with self._channel.makefile("r", encoding="utf-8") as received:
            line = received.readline()
        if not line.endswith("\n"):
            self._abort()
        return json.loads(line)

    def commit(self) -> None:
        """Confirm that this process goes on from that state. Raises UpgradeAborted if it is too late."""
        self._send(COMMITTED)
        self._channel.close()

    def _send(self, word: str) -> None:
        try:
            self._channel.sendall(f"{word}\n".encode())
        except OSError:
            self._abort()

    def _abort(self) -> NoReturn:
        raise UpgradeAborted("The old process no longer waits, and keeps serving.")
