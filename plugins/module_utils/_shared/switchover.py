# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record of a switchover on a member that it holds back, ``{to, since, by}``, while its router is stopped. Pure."""

from __future__ import annotations

from typing import Mapping

PATH = "/run/onprem-lb-switchover.json"  # a reboot removes it, and starts the router
KEYS = ("to", "since", "by")


def held_back(record: Mapping[str, str]) -> str:
    """Say why the router of a member is stopped."""
    return f"its router is stopped since {record['since']}, when {record['by']} handed the VIPs over to {record['to']}."
