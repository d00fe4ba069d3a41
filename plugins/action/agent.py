# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands ``agent`` the agent that it installs."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ansible.plugins.action import ActionBase
from ansible_collections.onprem.lb.plugins.plugin_utils.programs import with_program


class ActionModule(ActionBase):
    """Hands ``agent`` the agent that it installs."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        result: Dict[str, Any] = super().run(tmp, task_vars)
        is_installed = self._task.args.get("state", "present") == "present"
        return {**result, **with_program(self, "agent" if is_installed else "", task_vars or {})}
