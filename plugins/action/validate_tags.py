# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses tags that no task of a playbook has.

Each playbook begins with it, so it imports the filters and lookups for all of them.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from ansible.plugins.action import ActionBase
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.tags import tag_faults
from ansible_collections.onprem.lb.plugins.plugin_utils import command_line
from ansible_collections.onprem.lb.plugins.plugin_utils.preload import import_filters_and_lookups

import_filters_and_lookups()


class ActionModule(ActionBase):
    """Compares the tags of the command line with those of the playbook."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """Find no fault where the command line names another playbook: one that imports ours may have other tags."""
        result: Dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        found = tag_faults(
            list(known.get("ansible_run_tags", [])),
            list(known.get("ansible_skip_tags", [])),
            list(self._task.args.get("known") or []),
        )
        if found and command_line.names_our_playbook():
            return {**result, "failed": True, "msg": found}
        return {**result, "changed": False}
