# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of the roles' variables."""

from __future__ import annotations

import re
from typing import List

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import Faults, nearest


def as_role_variables(fault: str, prefix: str) -> str:
    """Settings are read as the keys of one mapping; in a sentence they are named PREFIX_KEY, as the user wrote them."""
    return re.sub(rf"^({prefix}(?:_\w+)?)\.", r"\1_", fault)


def unknown_variables(names: List[str], known: List[str]) -> Faults:
    """Return a sentence for each variable whose name is close to one of a role's: Ansible would ignore it silently."""
    sentences = []
    for name in names:
        near = nearest(name, known, cutoff=0.8)
        if name not in known and near:
            sentences.append(f"{name} is no variable of the role: did you mean {near}?")
    return sentences
