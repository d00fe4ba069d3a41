# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the configuration in a process of its own: many servers take seconds, in which monitors must answer."""

from __future__ import annotations

import os
import pickle
from typing import Callable, List, NamedTuple, Optional

from ...config import file, host
from ...runtime.forked import Forked
from ...runtime.loop import MILLION, Loop
from .. import config
from ..settings import Settings

NAME = "proxy-config"  # of the process
TIMEOUT = 20 * MILLION


class Found(NamedTuple):
    """What was read: settings, or faults."""

    text: str
    settings: Optional[Settings]
    faults: List[str]


def read(path: str) -> Found:
    """Return what a file configures on this host."""
    text, faults = file.load(path)
    settings, faults = (None, faults) if faults else config.parse(text, path, host)
    return Found(text, settings, faults)


class ConfigReader:
    """Reads a file once, in the background."""

    def __init__(self, loop: Loop, path: str, done: Callable[[Found], None]) -> None:
        """Start to read. Raises OSError."""
        self._loop, self._path, self._done = loop, path, done
        self._memory = os.memfd_create("configuration")
        try:
            process = Forked(NAME, lambda _end: self._write(), [self._memory])
        except OSError:
            os.close(self._memory)
            raise
        process.connection.close()
        self._timer = loop.after(TIMEOUT, process.kill)
        process.when_ended(loop, self._ended)

    def _write(self) -> None:
        """Run in the process."""
        with os.fdopen(self._memory, "wb") as memory:
            pickle.dump(read(self._path), memory)

    def _ended(self, ending: str) -> None:
        self._timer.cancel()
        with os.fdopen(self._memory, "rb") as memory:
            memory.seek(0)
            if ending == "exit code 0":
                found = pickle.load(memory)
            else:
                fault = f"{self._path} cannot be read: the process that read it has ended ({ending})."
                found = Found("", None, [fault])
        self._loop.after(0, lambda: self._done(found))  # after the monitors have had their turn
