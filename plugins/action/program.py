# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands ``program`` what it writes."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ansible.plugins.action import ActionBase
from ansible_collections.onprem.lb.plugins.plugin_utils.programs import with_program


class ActionModule(ActionBase):
    """Hands ``program`` what it writes."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        result: Dict[str, Any] = super().run(tmp, task_vars)
        return {**result, **with_program(self, str(self._task.args.get("name", "agent")), task_vars or {})}
