# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Records with a checksum, which says that one is as it was written. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict

KEY = "sha256"


def sealed(record: Dict[str, Any]) -> Dict[str, Any]:
    """Return a record with its checksum."""
    return {**record, KEY: _checksum(record)}


def unsealed(record: Dict[str, Any]) -> Dict[str, Any]:
    """Return a record without its checksum; one of a version that wrote none has to be judged by what it has.

    :raises ValueError: if it is another one's
    """
    rest = {key: value for key, value in record.items() if key != KEY}
    if KEY in record and record[KEY] != _checksum(rest):
        raise ValueError("it was changed since it was written: its checksum is another one's")
    return rest


def _checksum(record: Dict[str, Any]) -> str:
    as_in_a_file = json.loads(json.dumps(record))  # where keys are texts
    return hashlib.sha256(json.dumps(as_in_a_file, sort_keys=True).encode()).hexdigest()
