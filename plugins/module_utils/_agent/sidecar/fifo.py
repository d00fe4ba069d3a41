# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A FIFO that a process holds open for writing for as long as it lives."""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Optional

from ..runtime.loop import Loop

ENDED = ""  # in place of a line
HELD = "held"  # likewise, where somebody held the FIFO before it was opened here
ENOUGH = 65536  # bytes, the size of a pipe


class Fifo:
    """Calls with each line that is written to a FIFO, and with ENDED when nobody holds it open any more."""

    def __init__(self, loop: Loop, path: str, on_line: Callable[[str], None]) -> None:
        self._loop, self._path, self._on_line = loop, path, on_line
        self.is_held = False
        self._rest = b""
        self._descriptor = -1

    def open(self) -> None:
        """Open it, and call with HELD if somebody holds it and has written nothing. Raises OSError."""
        self._reopen()
        if not self._read() and self.is_held:
            self._on_line(HELD)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.forget(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _reopen(self) -> None:
        """Open it anew: one whose last writer has gone stays readable until then."""
        self.close()
        with contextlib.suppress(FileExistsError):
            os.makedirs(os.path.dirname(self._path), 0o755, exist_ok=True)
            os.mkfifo(self._path, 0o600)
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._loop.watch(self._descriptor, lambda _events: self._ready())

    def _ready(self) -> None:
        if self._read() is None:
            was_held, self.is_held, self._rest = self.is_held, False, b""
            self._reopen()
            if was_held:
                self._on_line(ENDED)

    def _read(self) -> Optional[int]:
        """Take what was written; return how many lines there were, None if nobody holds it."""
        try:
            data = os.read(self._descriptor, ENOUGH)
        except BlockingIOError:
            self.is_held = True
            return 0
        if not data:
            return None
        self.is_held = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(line.decode(errors="replace").strip())
        return len(lines)
