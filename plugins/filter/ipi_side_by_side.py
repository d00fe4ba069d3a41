# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compare what each preset costs a cluster: see ipi_side_by_side.yml beside this file."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import ipi, subnets


def ipi_side_by_side(members):
    if subnets.NETADDR_MISSING:
        raise AnsibleFilterError(
            "onprem.lb.ipi_side_by_side needs the Python package netaddr on the controller: install it."
        )
    return ipi.side_by_side(members)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"ipi_side_by_side": ipi_side_by_side}
