# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Programs that modules bring along, each in one file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from typing import Any

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
    handle, candidate = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o755)
            file.write(content)
        move(candidate, path)
    except OSError:
        os.unlink(candidate)
        raise
