# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fails with the faults that were found. ``assert`` would find them twice: for its condition, and for its message."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Fails unless there are no faults."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        result: Dict[str, Any] = super().run(tmp, task_vars)
        _valid, given = self.validate_argument_spec({"faults": {"type": "list", "elements": "str", "required": True}})
        faults = given["faults"]
        return {**result, "failed": True, "msg": faults} if faults else {**result, "changed": False}
