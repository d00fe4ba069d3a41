# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Signals as something that a loop hears: they wake it like everything else, and never come in between."""

from __future__ import annotations

import signal
import socket
from typing import Callable, Mapping

from .loop import Loop


class Signals:
    """To be made once in a process, and in its main thread."""

    def __init__(self, loop: Loop, wanted: Mapping[int, Callable[[], None]]) -> None:
        """
        :param wanted: what is called for which signal, in the order of importance when several have come
        """
        self._loop, self._wanted = loop, wanted
        self._ours, self._kernels = socket.socketpair()
        for end in (self._ours, self._kernels):
            end.setblocking(False)
        signal.set_wakeup_fd(self._kernels.fileno())
        for number in wanted:
            signal.signal(number, lambda *_ignored: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)
        loop.watch(self._ours.fileno(), self._ring)

    def close(self) -> None:
        """Go back to what signals usually do."""
        signal.set_wakeup_fd(-1)
        for number in self._wanted:
            signal.signal(number, signal.SIG_DFL)
        self._loop.forget(self._ours.fileno())
        self._ours.close()
        self._kernels.close()

    def _ring(self, _events: int) -> None:
        numbers = self._ours.recv(64)
        for number, callback in self._wanted.items():
            if number in numbers:
                callback()
