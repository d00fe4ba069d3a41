# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Signals as something that a loop hears: they never come in the middle of something.

A loop that waits has nothing to do: then they are heeded at once, which for a router that is to give up is in time to
make a difference. Otherwise they wake it like everything else.
"""

from __future__ import annotations

import signal
import socket
from typing import Any, Callable, FrozenSet, Mapping, Set

from .loop import Loop


class Signals:
    """To be made once in a process, and in its main thread."""

    def __init__(self, loop: Loop, wanted: Mapping[signal.Signals, Callable[[], None]]) -> None:
        """
        :param wanted: what is called for which signal, in the order of importance when several have come
        """
        self._loop, self._wanted = loop, wanted
        self._arrived: Set[int] = set()
        self._ours, self._kernels = socket.socketpair()
        for end in (self._ours, self._kernels):
            end.setblocking(False)
        signal.set_wakeup_fd(self._kernels.fileno())
        for number in wanted:
            signal.signal(number, self._arrive)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)
        loop.watch(self._ours.fileno(), self._ring)

    @property
    def pending(self) -> FrozenSet[int]:
        """What came too late to be heard."""
        return frozenset(self._arrived)

    def close(self) -> None:
        """Go back to what signals usually do."""
        signal.set_wakeup_fd(-1)
        for number in self._wanted:
            signal.signal(number, signal.SIG_DFL)
        self._loop.forget(self._ours.fileno())
        self._ours.close()
        self._kernels.close()

    def _arrive(self, number: int, _frame: Any) -> None:
        self._arrived.add(number)
        self._loop.run_if_idle(self._heed)

    def _ring(self, _events: int) -> None:
        self._ours.recv(64)
        self._heed()

    def _heed(self) -> None:
        for number, callback in self._wanted.items():
            if number in self._arrived and self._loop.running:  # the end is the last
                self._arrived.discard(number)
                callback()
