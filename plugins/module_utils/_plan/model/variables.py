# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of variables, as a user writes them."""

from __future__ import annotations

import re
from typing import List

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import Faults, nearest


def as_role_variables(fault: str, prefix: str) -> str:
    """Variables are read as keys of one mapping; the user knows them as PREFIX_KEY."""
    return re.sub(rf"^({prefix}(?:_\w+)?)\.", r"\1_", fault)


def unknown_variables(names: List[str], known: List[str]) -> Faults:
    """Return a sentence for each variable whose name is nearly that of a role's, which Ansible would pass over."""
    sentences = []
    for name in names:
        near = nearest(name, known, cutoff=0.8)
        if name not in known and near:
            sentences.append(f"{name} is no variable of the role: did you mean {near}?")
    return sentences
