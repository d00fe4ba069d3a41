# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Notifies systemd of the agent's state (sd_notify(3)). Without systemd it does nothing.

A container has no watchdog. There a file says that the process lives: the environment names it, and a probe looks
whether it was touched again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Any, Callable, MutableMapping, Optional

ALIVE = "ONPREM_LB_ALIVE"  # the variable that names the file
TOUCH_EVERY = 2_000_000  # microseconds


class Notifier:
    """Sends to the socket that systemd names in the environment; never blocks and never fails."""

    def __init__(self, environ: Optional[MutableMapping[str, str]] = None) -> None:
        environ = os.environ if environ is None else environ
        # Removed from the environment: programs that the agent starts must not notify systemd.
        name = environ.pop("NOTIFY_SOCKET", "")
        self._alive_file = environ.pop(ALIVE, "")
        watchdog = _watchdog(environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", ""))
        self.watchdog = watchdog or (TOUCH_EVERY if self._alive_file else None)
        # An @ stands for the NUL of an abstract socket's name.
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._socket: Optional[socket.socket] = None
        if self._address.startswith(("/", "\0")):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def ready(self) -> None:
        self._send("READY=1")

    def reloading(self) -> None:
        """Must be followed by ``ready``; the time is for units of Type=notify-reload."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """The line that `systemctl status` shows."""
        self._send(f"STATUS={' '.join(text.splitlines())}")

    def alive(self) -> None:
        """Say it once. It is due every ``watchdog`` microseconds, unless that is None."""
        self._send("WATCHDOG=1")
        if self._alive_file:
            _touch(self._alive_file)

    def _send(self, message: str) -> None:
        if self._socket:
            with contextlib.suppress(OSError):
                self._socket.sendto(message.encode(errors="backslashreplace"), self._address)


def keep_alive(after: Callable[[int, Callable[[], None]], Any], notifier: Notifier) -> None:
    """Say that this process lives, for as long as its loop runs.

    :param after: of the loop
    """
    if notifier.watchdog:
        notifier.alive()
        after(notifier.watchdog, lambda: keep_alive(after, notifier))


def _touch(path: str) -> None:
    """Touch a file. One that cannot be touched is removed: it would say that this process is dead."""
    try:
        with open(path, "ab"):
            os.utime(path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _watchdog(time_limit: str, pid: str) -> Optional[int]:
    """Return the interval of keep-alives in microseconds: half the time limit (sd_watchdog_enabled(3))."""
    if not time_limit.isdecimal() or int(time_limit) == 0 or pid not in ("", str(os.getpid())):
        return None
    return int(time_limit) // 2
