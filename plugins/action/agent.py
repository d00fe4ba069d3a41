# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands ``agent`` the agent that it installs."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.plugin_utils.programs import WithProgram


class ActionModule(WithProgram):
    """Hands ``agent`` the agent that it installs."""

    def program(self) -> str:
        return "agent" if self._task.args.get("state", "present") == "present" else ""
