# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Replaces /etc/resolv.conf and brings the one of before back. There is a whole file at each moment.

In a container the file is a mount point, which cannot be renamed over. There it is written in place, at once, while
both have the same length: the shorter one is followed by empty lines for that moment.
"""

from __future__ import annotations

import contextlib
import os
from typing import Optional

from ..._shared import mark
from ..candidates import candidate_of
from ..read import ownership
from .files import Move

MODE = 0o644


def text(path: str) -> Optional[str]:
    """Return a file's text, None without one. A link that leads nowhere has none either."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


def is_ours(path: str) -> bool:
    return mark.is_marked(text(path) or "")


def has_kept(path: str) -> bool:
    return os.path.lexists(ownership.kept(path))


def replace(path: str, wanted: str, supersede: bool, move: Move) -> None:
    """Write the file, and keep one that this collection has not written.

    :param supersede: keep it even if another one is kept, which is of no use any more
    """
    if os.path.lexists(path) and not is_ours(path):
        _keep(path, supersede)
    _write(path, wanted.encode("utf-8", "surrogateescape"), move)


def restore(path: str) -> bool:
    """Bring the file of before back, and return whether it could be: another one of others stays where it is."""
    kept = ownership.kept(path)
    if not is_ours(path) and os.path.lexists(path):
        if os.path.lexists(kept) and text(kept) == text(path) and os.path.islink(kept) == os.path.islink(path):
            os.unlink(kept)  # as an interrupted run leaves it
        return not os.path.lexists(kept)
    if not os.path.lexists(kept):
        os.unlink(path)
    elif os.path.ismount(path):
        with open(kept, "rb") as file:
            _write_in_place(path, file.read())
        os.unlink(kept)
    else:
        os.rename(kept, path)
    return True


def _keep(path: str, supersede: bool) -> None:
    """Keep the file beside it: under a second name, or as a copy of a mount point."""
    kept = ownership.kept(path)
    if os.path.lexists(kept) and not supersede:
        return  # this one, by an interrupted run: anything else was refused before
    if not os.path.ismount(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(kept)
        os.link(path, kept, follow_symlinks=False)
        return
    with open(path, "rb") as file:
        content = file.read()
    os.rename(_candidate(kept, content), kept)


def _write(path: str, content: bytes, move: Move) -> None:
    if os.path.ismount(path):
        _write_in_place(path, content)
    else:
        move(_candidate(path, content), path)


def _candidate(path: str, content: bytes) -> str:
    """Return a new file in the folder of another one, which is on the disk when this returns."""
    with candidate_of(path) as candidate:
        candidate.file.write(content)
        candidate.file.flush()
        os.fchmod(candidate.file.fileno(), MODE)
        os.fsync(candidate.file.fileno())
    return candidate.path


def _write_in_place(path: str, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        before, after = os.fstat(handle).st_size, len(content)
        os.pwrite(handle, b"\n" * (after - before), before)
        os.pwrite(handle, content + b"\n" * (before - after), 0)
        os.ftruncate(handle, after)
        os.fsync(handle)
    finally:
        os.close(handle)
