# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record of the file that HAProxy has loaded, which its unit writes: ``sha256sum FILE; cat /proc/uptime``.

A run of the roles reads it. A server that the runtime API has added is in force, and in the file, although HAProxy has
not read that.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Set

from . import files
from .changes import Refused


class Loaded:
    """Keeps the record at the file, as long as only servers that were added and removed make the difference."""

    def __init__(self, path: str) -> None:
        """:param path: '' where there is no record"""
        self._path = path
        self._same: Set[str] = set()  # checksums of what HAProxy has loaded, and has but for the servers

    def replacing(self, text: str) -> None:
        """Note that a file of this text is about to get other servers."""
        if self._checksum() == _sha256(text):
            self._same.add(_sha256(text))

    def applied(self, text: str) -> None:
        """Record that HAProxy has what a file of this text says. One that it has not loaded before stays unrecorded."""
        if self._checksum() not in self._same - {_sha256(text)}:
            return
        self._same.add(_sha256(text))
        with contextlib.suppress(OSError), open(self._path, "r+", encoding="utf-8") as file:
            file.write(_sha256(text))  # in place: the rest of the line, and the time, stay

    def _checksum(self) -> str:
        try:
            return files.load(self._path).partition(" ")[0] if self._path else ""
        except Refused:
            return ""


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
