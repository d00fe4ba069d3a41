# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Replaces /etc/resolv.conf and brings the one of before back. There is a whole file at each moment.

In a container the file is a mount point, which cannot be renamed over. There it is written in place, at once, while
both have the same length: the shorter one is followed by empty lines for that moment.

Whatever is kept comes to its place by a rename: dnsmasq, which reads it, notices no other way but a close of it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Callable, Optional

from .resolv_conf import MARK

MODE = 0o644
MOUNTS = "/proc/self/mountinfo"
Move = Callable[[str, str], None]


def kept_path(path: str) -> str:
    return f"{path}.before-onprem-lb"


def text(path: str) -> Optional[str]:
    """Return a file's text, None without one. A link that leads nowhere has none either."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


def is_ours(path: str) -> bool:
    return (text(path) or "").startswith(MARK)


def has_kept(path: str) -> bool:
    return os.path.lexists(kept_path(path))


def is_mount_point(path: str) -> bool:
    """Whether a file is mounted over this one; Python sees that only if it comes from another device."""
    if os.path.ismount(path):
        return True
    with contextlib.suppress(OSError), open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
        return any(line.split()[4] == path for line in mounts)
    return False


def replace(path: str, wanted: str, supersede: bool, move: Move = os.rename) -> None:
    """Write the file, and keep one that this collection has not written.

    :param supersede: keep it even if another one is kept, which is of no use any more
    """
    keep(path, supersede)
    write(path, wanted, move)


def keep(path: str, supersede: bool) -> None:
    """Keep a file of others beside it, which stays: under a second name, or as a copy of a mount point."""
    kept = kept_path(path)
    if not os.path.lexists(path) or is_ours(path):
        return
    if os.path.lexists(kept) and not supersede:
        return  # this one, by an interrupted run
    if is_mount_point(path):
        with open(path, "rb") as file:
            os.rename(_candidate(kept, file.read()), kept)
        return
    second = f"{kept}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(second)
    os.link(path, second, follow_symlinks=False)
    os.rename(second, kept)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(second)  # rename(2) does nothing where both are one file already


def restore(path: str, supersede: bool = False) -> bool:
    """Bring the file of before back, and return whether it could be: another one of others stays where it is.

    :param supersede: forget the one of before, in whose place another one has come
    """
    kept = kept_path(path)
    if not is_ours(path) and os.path.lexists(path):
        if os.path.lexists(kept) and (
            supersede or text(kept) == text(path) and os.path.islink(kept) == os.path.islink(path)
        ):
            os.unlink(kept)  # as an interrupted run leaves it
        return not os.path.lexists(kept)
    if not os.path.lexists(kept):
        os.unlink(path)
    elif is_mount_point(path):
        with open(kept, "rb") as file:
            _write_in_place(path, file.read())
        os.unlink(kept)
    else:
        os.rename(kept, path)
    return True


def write(path: str, wanted: str, move: Move = os.rename) -> None:
    content = wanted.encode("utf-8", "surrogateescape")
    if is_mount_point(path):
        _write_in_place(path, content)
    else:
        move(_candidate(path, content), path)


def _candidate(path: str, content: bytes) -> str:
    """Return a new file in the folder of another one, which is on the disk when this returns.

    :raises OSError: with the file that it is for; the candidate is gone then
    """
    candidate = ""
    try:
        handle, candidate = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(handle, MODE)
            os.fsync(handle)
        return candidate
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(candidate)
        raise OSError(error.errno, error.strerror, path) from None


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
