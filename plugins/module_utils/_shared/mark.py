# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The line by which this collection knows its own files. Pure."""

from __future__ import annotations

import re

MARK = "# Managed by Ansible, onprem.lb"  # what follows says which role, or what the file does
MARKED_LINES = 3  # it is among the first
# What keepalived takes from a track file, which has no room for a mark: a weight from -254 to 254. An operator writes
# other numbers than ours; a process ID is mostly greater.
STATE = re.compile(r"\s*([+-]?0*([0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-4])\s*)?")


def is_marked(text: str) -> bool:
    """Whether this collection has written a file with this text."""
    return any(line.startswith(MARK) for line in text.splitlines()[:MARKED_LINES])


def is_down_file(text: str) -> bool:
    """Whether a file with this text may be the one that says whether the balancer is down."""
    return bool(STATE.fullmatch(text))


def is_metrics(text: str) -> bool:
    """Whether this collection has written a file for node_exporter with this text."""
    return any(line.startswith("# HELP onprem_lb_") for line in text.splitlines())
