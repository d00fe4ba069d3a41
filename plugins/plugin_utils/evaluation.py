# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates variables. Ansible takes ten times as long for a template, and most values are none."""

from __future__ import annotations

from typing import Any, Callable

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import values


def evaluated(value: Any, evaluate: Callable[[Any], Any]) -> Any:
    """Return a variable with its templates evaluated.

    :param evaluate: returns the value of a template, or raises AnsibleError
    """
    return value if values.is_plain(value) else evaluate(value)
