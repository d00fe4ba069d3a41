# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Programs that a run brings along, each in one file. The controller packs them: a module that carried their sources
would have them compiled by each host, and searched by Ansible, in each run."""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from typing import Any

from ..candidates import Move, candidate_of, mover
from ..module import PACKED


def handed(content: bytes) -> str:
    """Return a program as an argument of a module."""
    return base64.b64encode(zlib.compress(content)).decode()


def taken(module: Any) -> bytes:
    """Return the program that the action plugin has handed to its module."""
    if not module.params[PACKED]:
        module.fail_json(msg=f"{PACKED} is missing: the action plugin of this module gives it, and was not run.")
    return zlib.decompress(base64.b64decode(module.params[PACKED]))


def keep(module: Any, path: str, content: bytes, **result: Any) -> None:
    """Let a module write a program where it differs, and end."""
    try:
        changed = _differs(path, content)
        if changed and not module.check_mode:
            _write(path, content, mover(module))
    except OSError as error:
        module.fail_json(msg=f"{path} cannot be written: {error.strerror}.")
    module.exit_json(changed=changed, checksum=hashlib.sha256(content).hexdigest(), **result)


def _differs(path: str, content: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() != content
    except FileNotFoundError:
        return True


def _write(path: str, content: bytes, move: Move) -> None:
    """Replace the file at once; a process that runs it goes on with the old one."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with candidate_of(path) as candidate:
        os.fchmod(candidate.file.fileno(), 0o755)
        candidate.file.write(content)
        candidate.file.flush()
        move(candidate.path, path)
