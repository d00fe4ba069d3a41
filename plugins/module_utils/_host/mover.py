# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a new file takes the place of an old one."""

from __future__ import annotations

import os
from typing import Any, Callable


def mover(module: Any) -> Callable[[str, str], None]:
    """Return a move that keeps the destination's SELinux context but, unlike AnsibleModule's, not its permissions."""

    def move(source: str, destination: str) -> None:
        if module.selinux_enabled():
            known = os.path.exists(destination)
            context = module.selinux_context(destination) if known else module.selinux_default_context(destination)
            module.set_context_if_different(source, context, False)
        os.rename(source, destination)

    return move
