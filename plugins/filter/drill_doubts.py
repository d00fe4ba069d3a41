# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""List the rounds of a drill that are to be played again: see drill_doubts.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import report


def drill_doubts(played):
    return report.in_doubt(played)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"drill_doubts": drill_doubts}
