# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Renders the report on many servers in processes of their own: it takes long, and monitors must answer meanwhile."""

from __future__ import annotations

from typing import Callable, List

from ...runtime.background import SUCCESS, Background
from ...runtime.loop import MILLION, Loop
from ...runtime.request_server import Answered

NAME = "proxy-report"  # of the processes
MANY = 500  # servers; rendering fewer takes some milliseconds, about as long as to start a process
MAX_RUNNING = 3  # at a time
TIMEOUT = 10 * MILLION

Render = Callable[[], bytes]


class Renderer:
    """Renders some answers at a time, and refuses more."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._running: List[Background] = []
        self.servers = 0  # on which it reports

    @property
    def pids(self) -> List[int]:
        """The processes."""
        return [each.pid for each in self._running]

    def answer(self, render: Render) -> Answered:
        """Return what ``render`` returns, or the promise of it."""
        if self.servers < MANY:
            return render()
        return lambda reply: self._start(render, reply)

    def _start(self, render: Render, reply: Callable[[bytes], None]) -> None:
        if len(self._running) >= MAX_RUNNING:
            reply(b"")
            return

        def done(answer: bytes, ending: str) -> None:
            self._running.remove(process)
            reply(answer if ending == SUCCESS else b"")  # else it may be a part

        try:
            process = Background(self._loop, NAME, render, done, TIMEOUT)
        except OSError:  # a late answer is better than none
            reply(render())
        else:
            self._running.append(process)
