# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Python of what stays on a host when a run has ended: the agent, the hook, the undo."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import Any


def lasting(process: Any = sys) -> str:
    """Return the interpreter of this process, or the one that its virtual environment was made of.

    Whoever made a virtual environment for Ansible may remove it, and what runs here would not start any more. Of two
    names of one interpreter it is the one that a new release of the system keeps.
    """
    if process.prefix == process.base_prefix:
        return str(process.executable)
    folder, (major, minor) = f"{process.base_prefix}/bin", process.version_info[:2]
    versioned, general = f"{folder}/python{major}.{minor}", f"{folder}/python{major}"
    if not os.access(versioned, os.X_OK):
        return str(process.executable)
    return general if os.path.realpath(general) == os.path.realpath(versioned) else versioned


def run_by(python: str, program: bytes) -> bytes:
    """Return a program with a first line that names its Python.

    :param python: its path; it runs isolated from its environment and without its site-packages
    """
    return f"#!{python} -IS\n".encode() + _body(program)


def checksum(program: bytes) -> str:
    """Return what tells a program from that of another release, whichever Python runs either."""
    return hashlib.sha256(_body(program)).hexdigest()


def _body(program: bytes) -> bytes:
    """Return all but the first line. A zip file may begin with anything."""
    return program.partition(b"\n")[2]
