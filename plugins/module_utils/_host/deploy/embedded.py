# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's sources as shipped in the AnsiballZ payload: Ansible packs what a module imports, directly or not.

Importing the agent's command line is enough, because that imports all of the agent, in functions too.
"""

from __future__ import annotations

import os

from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive


def build() -> bytes:
    """Return the agent as one file, byte for byte as the controller would build it."""
    folder = os.path.dirname(os.path.abspath(cli.__file__))
    if os.path.isdir(folder):  # a checkout, or a module that was unpacked for debugging
        return archive.build(folder)
    payload = cli.__loader__.archive
    return archive.rebuild(payload, os.path.relpath(folder, payload))
