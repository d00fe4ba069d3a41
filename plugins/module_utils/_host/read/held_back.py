# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the record of a switchover or a maintenance on a member that it holds back."""

from __future__ import annotations

import json
from typing import Dict, Mapping

from ..._shared.engines import UNITS
from ..._shared.held_back import KEYS, MAINTENANCE, PATHS, SWITCHOVER
from .reader import Reader


def in_force(reader: Reader, paths: Mapping[str, str] = PATHS) -> Dict[str, str]:
    """Return the record; {} if there is none, or a router runs again.

    A maintenance disables the router. One that is enabled has stopped for another reason since.
    """
    records = {during: _read(reader.text(path), during) for during, path in paths.items()}
    routers = [units.router for units in UNITS.values()]
    if not any(records.values()) or reader.units_in("ActiveState", routers, "active", "reloading"):
        return {}
    is_disabled = records[MAINTENANCE] and not reader.units_in("UnitFileState", routers, "enabled")
    return records[MAINTENANCE if is_disabled else SWITCHOVER]


def _read(text: str, during: str) -> Dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict) or not found:
        return {}
    return {"during": during, **{key: str(found.get(key, "")) for key in KEYS}}
