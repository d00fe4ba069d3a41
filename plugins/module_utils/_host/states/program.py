# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Builds `undo` and `fallback` as files that python3 runs, from what Ansible packs for the module that imports them."""

from __future__ import annotations

from ..deploy import archive
from . import fallback, undo

PROGRAMS = {"undo": undo, "fallback": fallback}
# Relative imports need a package above them.
START = """\
import sys

from lb._host.states.{name} import main

sys.exit(main())
"""


def build(name: str = "undo") -> bytes:
    """Return a program."""
    modules = archive.carried(PROGRAMS[name], above=2)
    return archive.pack({"__init__.py": b"", **modules}, START.format(name=name).encode(), package="lb")
