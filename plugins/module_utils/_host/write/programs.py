# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Programs that modules bring along, each in one file."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ..candidates import candidate_of
from . import files


def keep(module: Any, path: str, content: bytes, **result: Any) -> None:
    """Let a module write a program where it differs, and end."""
    try:
        changed = _differs(path, content)
        if changed and not module.check_mode:
            _write(path, content, files.mover(module))
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be written: {error.strerror}.")
    module.exit_json(changed=changed, checksum=hashlib.sha256(content).hexdigest(), **result)


def _differs(path: str, content: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() != content
    except FileNotFoundError:
        return True


def _write(path: str, content: bytes, move: files.Move) -> None:
    """Replace the file at once; a process that runs it goes on with the old one."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with candidate_of(path) as candidate:
        os.fchmod(candidate.file.fileno(), 0o755)
        candidate.file.write(content)
        candidate.file.flush()
        move(candidate.path, path)
