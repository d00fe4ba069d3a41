# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a check is defined otherwise than the one that runs. Pure.

The host tells no more of its checks than digests: the arguments of a script may be secrets.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Mapping


def digest(definition: Mapping[str, Any]) -> str:
    """Return what is the same for two definitions only if they are the same; 2 and 2.0 are."""
    plain = {key: float(value) if isinstance(value, int) else value for key, value in definition.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
