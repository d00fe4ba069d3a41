# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The file that a VRRP router tracks: 0 while the table is there and this program lives, otherwise 1."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional

from ..checks.outcome import in_words
from ..runtime.loop import MILLION, Loop, Timer

PATIENCE = MILLION  # how long the table may be missing: it is back sooner than a VIP has moved
UP, DOWN = "0", "1"


class DownFile:
    """Writes the file when what it says changes."""

    def __init__(self, loop: Loop, log: Any) -> None:
        self._loop, self._log = loop, log
        self._path = ""
        self._written: Optional[str] = None
        self._timer: Optional[Timer] = None

    def use(self, path: str) -> None:
        """Write to this file from now on, to none if it is ''. What an earlier run has left there stays at first."""
        if path != self._path:
            wanted, self._path = self._written, path
            self._written = self._left()
            self._write(wanted or self._written or DOWN)

    def _left(self) -> Optional[str]:
        """Return what the file says; None if that is nothing."""
        with contextlib.suppress(OSError), open(self._path, encoding="ascii", errors="replace") as file:
            found = file.read().strip()
            return found if found in (UP, DOWN) else None
        return None

    @property
    def is_up(self) -> bool:
        return self._written == UP

    def report(self, good: bool) -> None:
        """Take whether the table is as it should be."""
        if good:
            self._cancel()
            self._write(UP)
        elif self._written == UP and not self._timer:
            self._timer = self._loop.after(PATIENCE, self.give_up)

    def give_up(self) -> None:
        """Have VRRP move the VIP now."""
        self._cancel()
        self._write(DOWN)

    def _cancel(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _write(self, text: str) -> None:
        if text == self._written:
            return
        self._written = text
        try:
            if self._path:
                with contextlib.suppress(FileExistsError):
                    os.makedirs(os.path.dirname(self._path), mode=0o755)
                with open(self._path, "w", encoding="ascii") as file:
                    file.write(f"{text}\n")
        except OSError as error:
            self._log.fault("down_file", f"{self._path} cannot be written: {in_words(error)}.")
        else:
            self._log.cured("down_file", f"{self._path} is written again.")
