# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Name members by their hardware addresses: see drill_members.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import rounds


def drill_members(members):
    return rounds.members_by_mac(members)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"drill_members": drill_members}
