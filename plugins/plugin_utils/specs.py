# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the argument specs of this collection's roles."""

from __future__ import annotations

from typing import List

import yaml
from ansible_collections.onprem.lb.plugins.plugin_utils.templates import ROLES

# Written in C, where PyYAML has that: ten times as fast.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def role_options(role: str) -> List[str]:
    """Return the names of the variables that a role knows."""
    text = (ROLES / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    return list(yaml.load(text, Loader=Loader)["argument_specs"]["main"]["options"])
