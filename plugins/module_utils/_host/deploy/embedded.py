# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent that has travelled to this host inside the module: Ansible packs what a module imports, and so on.

The agent's command line reaches all of it, also where an import stands in a function, so naming that is enough.
"""

from __future__ import annotations

import os

from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION, cli
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive as _archive

__all__ = ["VERSION", "archive"]


def archive() -> bytes:
    """Return the agent as one file: byte for byte what the controller would build."""
    folder = os.path.dirname(os.path.abspath(cli.__file__))
    if os.path.isdir(folder):  # a checkout, or a module that was unpacked to be looked at
        return _archive.build(folder)
    luggage = cli.__loader__.archive
    return _archive.rebuild(luggage, os.path.relpath(folder, luggage))
