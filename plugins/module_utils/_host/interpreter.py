# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Python of what stays on a host when a run has ended: the agent, the hook, the undo."""

from __future__ import annotations

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
