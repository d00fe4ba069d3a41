# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Find variables whose name is nearly right: see misspelt_variables.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables


def misspelt_variables(names, known):
    return variables.misspelt(names, known)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"misspelt_variables": misspelt_variables}
