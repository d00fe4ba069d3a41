# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run compares with the files that it wants, so that it need not write, and check, those that are in force."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

from .. import interpreter
from . import in_force, loaded_files
from .reader import Reader, content


class OnDisk(NamedTuple):
    """A file on disk."""

    checksum: str = ""  # SHA-256; '' if there is no such file
    mode: str = ""  # four octal digits
    stale: List[str] = []  # why it is not in force, in sentences


def read(reader: Reader, wanted: Iterable[Mapping[str, Any]]) -> Dict[str, OnDisk]:
    """Return each file by its path.

    :param wanted: each with its ``path``, and the ``unit`` that loads it, if one does; of keepalived's hook the
        ``keepalived_hook`` is the checksum of this release's
    """
    files = [*wanted]
    stale = dict(in_force.stale_files(reader, [(item["unit"], item["path"]) for item in files if item.get("unit")]))
    hooks = {item["path"]: item["keepalived_hook"] for item in files if item.get("keepalived_hook")}
    others = [path for path, checksum in hooks.items() if not _is_of_this_release(content(path), checksum)]
    stale.update({path: [f"{path} is of another release."] for path in others})
    return {path: _read(path, stale.get(path, [])) for path in (item["path"] for item in files)}


def _is_of_this_release(hook: bytes, checksum: str) -> bool:
    """Whether a hook has this checksum, and the first line that a run would give it."""
    return (interpreter.checksum(hook), hook) == (checksum, interpreter.run_by(interpreter.lasting(), hook))


def _read(path: str, stale: List[str]) -> OnDisk:
    if not os.path.isfile(path):  # a pipe would never end
        return OnDisk(stale=stale)
    try:
        return OnDisk(loaded_files.checksum(path), f"{os.stat(path).st_mode & 0o7777:04o}", stale)
    except OSError:
        return OnDisk(stale=stale)
