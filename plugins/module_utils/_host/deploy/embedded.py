# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent's sources as shipped in the AnsiballZ payload: Ansible packs what a module imports, directly or not.

The agent's command line imports all of the agent, in functions too, but for what keepalived's hook runs, which is a
program of its own.
"""

from __future__ import annotations

from ..._agent import cli
from ..._agent.keepalived import answers as _answers  # noqa: F401  # so that Ansible packs it
from ..._agent.keepalived import peers as _peers  # noqa: F401  # likewise
from ..._agent.keepalived import predecessor as _predecessor  # noqa: F401  # likewise
from ..._agent.keepalived import resignation as _resignation  # noqa: F401  # likewise
from . import archive


def build() -> bytes:
    """Return the agent as one file, byte for byte as the controller would build it."""
    return archive.pack(archive.carried(cli))
