# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Replaces a file that a program reads: the program tests the new one first, and nobody ever sees half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Callable, Optional

from ..checks.outcome import in_words
from .changes import Refused

Test = Callable[[str], Optional[str]]  # of a file: returns what is wrong with it


def load(path: str) -> str:
    """Return a file's text. Raises Refused."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as fault:
        raise Refused(f"{path} cannot be read: {in_words(fault)}.") from fault
    except ValueError as fault:
        raise Refused(f"{path} is not written in UTF-8.") from fault


def replace(path: str, text: str, test: Test, mode: int = 0o600) -> None:
    """Replace a file by a text that passes a test; owner and mode stay. Raises Refused: then nothing has changed.

    :param mode: of a file that is new
    """
    real = os.path.realpath(path)
    candidate = ""
    try:
        handle, candidate = tempfile.mkstemp(prefix=f".{os.path.basename(real)}.", dir=os.path.dirname(real))
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, mode)
            _like(real, handle)
            file.write(text)
            file.flush()
            os.fsync(handle)
        wrong = test(candidate)
        if wrong:
            raise Refused(f"{path} stays as it is, because the new one is refused: {wrong.replace(candidate, path)}")
        os.rename(candidate, real)
        candidate = ""
    except OSError as fault:
        raise Refused(f"{path} cannot be written: {in_words(fault)}.") from fault
    finally:
        if candidate:
            with contextlib.suppress(OSError):
                os.unlink(candidate)


def _like(path: str, handle: int) -> None:
    """Give a file the owner and the mode of another one, if that exists."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)
        os.fchmod(handle, found.st_mode & 0o7777)  # first: a file of another owner could not be changed any more
        if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(handle, found.st_uid, found.st_gid)
