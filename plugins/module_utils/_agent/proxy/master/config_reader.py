# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the configuration in a process of its own: many servers take seconds, in which monitors must answer."""

from __future__ import annotations

import pickle
from typing import Callable

from ...config.file import Found
from ...runtime.background import SUCCESS, Background
from ...runtime.loop import MILLION, Loop
from .. import config

NAME = "proxy-config"  # of the process
TIMEOUT = 20 * MILLION


class ConfigReader:
    """Reads a file once, in the background."""

    def __init__(self, loop: Loop, path: str, done: Callable[[Found], None]) -> None:
        """Start to read. Raises OSError."""
        self._loop, self._path, self._done = loop, path, done
        Background(loop, NAME, lambda: pickle.dumps(config.load(path)), self._ended, TIMEOUT)

    def _ended(self, result: bytes, ending: str) -> None:
        if ending == SUCCESS:
            found = pickle.loads(result)
        else:
            fault = f"{self._path} cannot be read: the process that read it has ended ({ending})."
            found = Found("", None, [fault])
        self._loop.after(0, lambda: self._done(found))  # after the monitors have had their turn
