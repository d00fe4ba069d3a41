# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A new version of the router takes over from the running one, between two Advertisements.

The new program is started beside the old one, and has everything ready before it asks for its turn: then the old one
says what it knows, falls silent, and ends when it hears that the new one goes on. Until then nothing is given up, so
that a new version that is none, or that comes to nothing, costs a line in the log.
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

PATIENCE = 30 * MILLION  # until a new version must be ready
MOMENT = 1.0  # seconds, in which it must have understood what it is told: nobody advertises meanwhile
READY, TAKEN = "ready", "taken"  # what the successor says, a line each; before them its process, and last of all pid


class UpgradeAborted(Exception):
    """The predecessor goes on without us."""


class NewProcess:
    """The new program, as the old one sees it."""

    def __init__(
        self,
        loop: Loop,
        environ: Mapping[str, str],
        left: Dict[str, Any],
        on_ready: Callable[[], None],
        on_end: Callable[[str], None],
    ) -> None:
        """Start it. Raises OSError.

        :param environ: as this process was started with
        :param left: what it must know before it is ready, with ``door``: the status socket's path and descriptor
        :param on_ready: is called once, and is to call ``take_over``
        :param on_end: is called instead, with the reason why it will not come to that
        """
        self.pid = 0  # known when it has said so
        self._loop, self._on_ready, self._on_end = loop, on_ready, on_end
        self._heard = b""
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        with theirs:
            self._start(environ, {**left, "channel": theirs.fileno()})
        loop.watch(self._channel.fileno(), self._hear)
        self._late = loop.after(PATIENCE, lambda: self._fail("it is not ready in time"))

    def _start(self, environ: Mapping[str, str], left: Dict[str, Any]) -> None:
        """It inherits three descriptors, and neither our urgency (SCHED_RESET_ON_FORK) nor our locked memory."""
        memory = upgrade_state.save(left)
        handed_over = (memory, left["channel"], left["door"][1])
        own = {name: value for name, value in environ.items() if name != "WATCHDOG_PID"}  # which is ours
        for descriptor in handed_over:
            os.set_inheritable(descriptor, True)
        try:
            whole = {**own, upgrade_state.VARIABLE: str(memory)}
            pid = os.posix_spawn(sys.executable, upgrade_state.command_line(), whole)
        except OSError:
            self._channel.close()
            raise
        finally:
            for descriptor in handed_over:
                os.set_inheritable(descriptor, False)
            os.close(memory)
        upgrade_state.reap(self._loop, pid)  # see OldProcess

    def _hear(self, _events: int) -> None:
        try:
            said = self._channel.recv(4096)
        except OSError:
            said = b""
        self._heard += said
        words = self._heard.decode().split("\n")[:-1]
        self.pid = int(words[0]) if words else 0
        if not said:
            self._fail("it has ended, and the log says why")
        elif READY in words:
            self._loop.forget(self._channel.fileno())
            self._late.cancel()
            self._on_ready()

    def _fail(self, why: str) -> None:
        self.close()
        self._on_end(why)

    def take_over(self, known: Dict[str, Any]) -> bool:
        """Let it go on from here; return whether it does, and otherwise it is no more."""
        with contextlib.suppress(OSError):
            self._channel.settimeout(MOMENT)
            self._channel.sendall(json.dumps(known).encode() + b"\n")
            if self._channel.recv(64) == f"{TAKEN}\n".encode():
                self._channel.close()
                return True
        self.close()
        return False

    def close(self) -> None:
        """Give it up: two that have the same addresses would be worse than none that is new."""
        self._late.cancel()
        self._loop.forget(self._channel.fileno())
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._channel.close()


class OldProcess:
    """The old program, as the new one sees it."""

    def __init__(self, left: Dict[str, Any]) -> None:
        self.text: str = left["config"]  # of the configuration that is in force
        self.door: str = left["door"][0]
        self.door_socket = upgrade_state.socket_of(left["door"][1])
        self._channel = upgrade_state.socket_of(left["channel"])
        self._channel.setblocking(True)
        self._say(str(os.getpid()))

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> Optional[OldProcess]:
        """Return the one that has started this process, None where it was somebody else."""
        left = upgrade_state.load(environ)
        if left is None:
            return None
        if os.fork():
            # systemd waits for the end of a main process only if it is its own child, as orphans are.
            os._exit(0)
        return cls(left)

    def ask(self) -> Dict[str, Any]:
        """Say that all is ready, and wait for the turn; return what the old one knows. Raises Gone."""
        self._say(READY)
        with self._channel.makefile("r", encoding="utf-8") as said:
            line = said.readline()
        if not line.endswith("\n"):
            self._give_up()
        return json.loads(line)

    def dismiss(self) -> None:
        """Say that all is understood. Raises Gone where it is too late for that."""
        self._say(TAKEN)
        self._channel.close()

    def _say(self, word: str) -> None:
        try:
            self._channel.sendall(f"{word}\n".encode())
        except OSError:
            self._give_up()

    def _give_up(self) -> NoReturn:
        raise UpgradeAborted("The predecessor does not wait any more, and goes on itself.")
