# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Signals as events of a loop: a handler never interrupts a callback.

If the loop is waiting, a signal is handled at once: a router that resigns saves the time of a wake-up. Otherwise it is
handled like any other event.
"""

from __future__ import annotations

import signal
import socket
from typing import Any, Callable, Mapping, Set

from .loop import Loop


class Signals:
    """Create it once in a process, in its main thread."""

    def __init__(self, loop: Loop, handlers: Mapping[signal.Signals, Callable[[], None]]) -> None:
        """Handle these signals; if several have arrived, in this order."""
        self._loop, self._handlers = loop, handlers
        self._arrived: Set[int] = set()
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno())
        for number in handlers:
            signal.signal(number, self._arrive)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers)
        loop.watch(self._reader.fileno(), self._wake_up)

    def close(self) -> None:
        """Restore the default handlers."""
        signal.set_wakeup_fd(-1)
        for number in self._handlers:
            signal.signal(number, signal.SIG_DFL)
        self._loop.forget(self._reader.fileno())
        self._reader.close()
        self._writer.close()

    def _arrive(self, number: int, _frame: Any) -> None:
        self._arrived.add(number)
        self._loop.run_if_idle(self._handle)

    def _wake_up(self, _events: int) -> None:
        self._reader.recv(64)
        self._handle()

    def _handle(self) -> None:
        for number, callback in self._handlers.items():
            if number in self._arrived and self._loop.running:
                self._arrived.discard(number)
                callback()
