# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Builds the program `undo` as one file that python3 runs, from what Ansible packs for the module that imports it."""

from __future__ import annotations

from ..deploy import archive
from . import undo

# Relative imports need a package above them.
START = b"""\
import sys

from lb._host.states.undo import main

sys.exit(main())
"""


def build() -> bytes:
    """Return the program."""
    modules = archive.carried(undo, above=2)
    return archive.pack({"__init__.py": b"", **modules}, START, package="lb")
