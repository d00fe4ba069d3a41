# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Judge what a drill has measured: see drill_report.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import report


def drill_report(played):
    return report.report(played)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"drill_report": drill_report}
