# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Computes something that takes long in a process of its own, so that everything else goes on meanwhile."""

from __future__ import annotations

import os
from typing import Callable

from .forked import Forked
from .loop import Loop

SUCCESS = "exit code 0"


class Background:
    """One computation."""

    def __init__(
        self, loop: Loop, name: str, compute: Callable[[], bytes], done: Callable[[bytes, str], None], timeout: int
    ) -> None:
        """Start it. Raises OSError.

        :param name: of the process
        :param compute: runs there
        :param done: called with what that has returned, and with how the process has ended, such as SUCCESS
        :param timeout: microseconds until the process is killed
        """
        self._done = done
        self._memory = os.memfd_create(name)
        try:
            process = Forked(name, lambda _end: self._write(compute()), [self._memory])
        except OSError:
            os.close(self._memory)
            raise
        self.pid = process.pid
        process.connection.close()
        self._timer = loop.after(timeout, process.kill)
        loop.after(0, lambda: process.when_ended(loop, self._ended))

    def _write(self, result: bytes) -> None:
        with os.fdopen(self._memory, "wb", closefd=False) as memory:
            memory.write(result)

    def _ended(self, ending: str) -> None:
        self._timer.cancel()
        with os.fdopen(self._memory, "rb") as memory:
            memory.seek(0)
            result = memory.read()
        self._done(result, ending)
