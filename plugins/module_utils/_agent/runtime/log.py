# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The log. Writing never blocks: a slow reader costs messages, not a VIP."""

from __future__ import annotations

import os
import select
from typing import Iterable, Mapping, Optional, Set

ERROR, WARNING, INFO = 3, 4, 6  # syslog's, as in the prefixes of sd-daemon(3)
MAX_LINE = select.PIPE_BUF  # bytes that a writable pipe takes at once; a socket takes more


class Log:
    """Writes to a descriptor. Lines that cannot be written without blocking are dropped and counted."""

    def __init__(self, descriptor: int = 2, environ: Optional[Mapping[str, str]] = None) -> None:
        self._descriptor = descriptor
        self._journal = _is_journal(descriptor, os.environ if environ is None else environ)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._faults: Set[str] = set()
        self._lost = 0

    def info(self, text: str) -> None:
        self._log(INFO, text)

    def warning(self, text: str) -> None:
        self._log(WARNING, text)

    def fault(self, key: str, text: str) -> None:
        """Log an error once until it is cured, whatever its text: its cause must not be able to fill the log."""
        if key not in self._faults:
            self._faults.add(key)
            self._log(ERROR, text)

    def cured(self, key: str, text: str) -> None:
        """Log that a fault is over, if it was logged."""
        self.all_cured([key], text)

    def all_cured(self, keys: Iterable[str], text: str) -> None:
        """Log once that several faults are over, if one of them was logged."""
        logged = self._faults.intersection(keys)
        self._faults -= logged
        if logged:
            self._log(INFO, text)

    def _log(self, level: int, text: str) -> None:
        if self._lost and self._write(WARNING, f"{self._lost} messages are lost: they were not read in time."):
            self._lost = 0
        if self._lost or not self._write(level, text):
            self._lost += 1

    def _write(self, level: int, text: str) -> bool:
        """Return whether it was written without blocking."""
        prefix = f"<{level}>" if self._journal else ""
        line = f"{prefix}{' '.join(text.splitlines())}".encode(errors="backslashreplace")
        try:
            ready = self._poll.poll(0)
            return bool(ready) and os.write(self._descriptor, line[: MAX_LINE - 1] + b"\n") > 0
        except OSError:
            return False


def _is_journal(descriptor: int, environ: Mapping[str, str]) -> bool:
    """systemd says in JOURNAL_STREAM, as DEVICE:INODE, which descriptor goes to the journal (sd-daemon(3))."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
