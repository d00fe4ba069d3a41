# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands ``program`` what it writes."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.plugin_utils.programs import WithProgram


class ActionModule(WithProgram):
    """Hands ``program`` what it writes."""

    def program(self) -> str:
        return str(self._task.args.get("name", "agent"))
