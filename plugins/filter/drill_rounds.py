# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""List the rounds of a drill: see drill_rounds.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import rounds


def drill_rounds(plan, events, repeats):
    return rounds.rounds(plan, events, repeats)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"drill_rounds": drill_rounds}
