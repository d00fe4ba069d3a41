# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plan the VIPs of a cluster whose own nodes carry them: see ipi_plan.yml beside this file."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import ipi, subnets


def ipi_plan(members):
    if subnets.NETADDR_MISSING:
        raise AnsibleFilterError("onprem.lb.ipi_plan needs the Python package netaddr on the controller: install it.")
    return ipi.plan(members)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"ipi_plan": ipi_plan}
