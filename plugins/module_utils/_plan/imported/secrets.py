# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""In which variables of an inventory that was converted secrets are. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Tuple

SECRET = re.compile(
    r"\b(stats\s+auth|(insecure-)?password|setenv|presetenv|AUTH|secret|http_auth_bearer|Authorization|[\w-]*token[\w-]*"
    r"|[\w-]*api-?key[\w-]*)\b",
    re.IGNORECASE,
)
PASSWORDS = ("pair_auth_pass",)


def names(variables: Dict[str, Any]) -> List[str]:
    """Return the names of the variables in which secrets are."""
    return [
        name
        for name, value in variables.items()
        if name in PASSWORDS or any(SECRET.search(text) for text in texts(value))
    ]


def texts(value: Any) -> Tuple[str, ...]:
    """Return each text in lists and mappings."""
    if isinstance(value, dict):
        return tuple(text for each in value.values() for text in texts(each))
    if isinstance(value, list):
        return tuple(text for each in value for text in texts(each))
    return (value,) if isinstance(value, str) else ()
