# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The first line of a file that a user may edit: it tells whether the rest is still what a playbook wrote. Pure."""

from __future__ import annotations

import hashlib
import re

HEAD = re.compile(r"---\n# Written by onprem\.lb\.import, ([0-9a-f]{64})\n")


def sealed(text: str) -> str:
    return f"---\n# Written by onprem.lb.import, {_checksum(text)}\n{text}"


def is_unchanged(text: str) -> bool:
    """Return whether nobody has edited a file since."""
    head = HEAD.match(text)
    return head is not None and _checksum(text[head.end() :]) == head[1]


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
