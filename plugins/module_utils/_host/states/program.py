# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Builds the program `undo` as one file that python3 runs, from what Ansible packs for the module that imports it."""

from __future__ import annotations

import os
import zipimport
from typing import cast

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
    states = os.path.dirname(os.path.abspath(undo.__file__))
    folder = os.path.dirname(os.path.dirname(states))
    if os.path.isdir(folder):  # a checkout, or a module that was unpacked for debugging
        modules = archive.sources(folder)
    else:
        payload = cast(zipimport.zipimporter, undo.__loader__).archive
        modules = archive.packed(payload, os.path.relpath(folder, payload))
    return archive.pack({"__init__.py": b"", **modules}, "lb", START)
