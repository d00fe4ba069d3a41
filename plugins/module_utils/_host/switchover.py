# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the record of a switchover on a member that it holds back."""

from __future__ import annotations

import json
from typing import Dict

from .._shared.engines import UNITS
from .._shared.switchover import KEYS, PATH
from .reader import Reader


def in_force(reader: Reader, path: str = PATH) -> Dict[str, str]:
    """Return the record; {} if there is none, or a router runs again."""
    found = _read(reader.text(path))
    routers = [units.router for units in UNITS.values()]
    return {} if found and reader.units_in("ActiveState", routers, "active", "reloading") else found


def _read(text: str) -> Dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {key: str(found.get(key, "")) for key in KEYS} if isinstance(found, dict) and found else {}
