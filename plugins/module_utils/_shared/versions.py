# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which version of this collection has set a host up, and whether that is a newer one than this. Pure.

A run leaves its version in its record of the members, which each version writes anew.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Tuple

from .._agent import VERSION

KEY = "written by"  # beside the members' names, none of which has a space
SILENT = "1.0.0"  # the release that did not say so
UNKNOWN = "unknown"
NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)(-[\w.-]+)?")


def marked(record: Dict[str, Any]) -> Dict[str, Any]:
    """Return a record of the members with this version."""
    return {**record, KEY: VERSION}


def written_by(record: str) -> str:
    """Return the version that wrote a record of the members; '' without one, UNKNOWN if it cannot be read."""
    try:
        found = json.loads(record or "null")
    except ValueError:
        return UNKNOWN
    if found is None:
        return ""
    return str(found.get(KEY, SILENT)) if isinstance(found, dict) else UNKNOWN


def _order(version: str) -> Tuple[int, ...]:
    """Return what versions are ordered by: 1.1.0-dev comes before 1.1.0. () is of no version."""
    found = NUMBERS.fullmatch(version)
    return (*map(int, found.group(1, 2, 3)), int(not found[4])) if found else ()


def refusal(what: str, version: str, variable: str) -> str:
    """Return why this version must not write where another one wrote; '' where it may.

    :param what: the file that says which version that was
    :param variable: the one by which a user accepts it
    """
    order = _order(version)
    if not version or () < order <= _order(VERSION):
        return ""
    go_on = f"or go on with -e {variable}=true."
    if order:
        return f"onprem.lb {version} wrote {what}, and this is {VERSION}: install {version} or a later one, {go_on}"
    return f"{what} does not say which version of onprem.lb wrote it, so it may be a newer one: mend that, {go_on}"
