# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plan a MASTER/BACKUP pair: see pair_plan.yml beside this file."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair, subnets


def pair_plan(members):
    if subnets.NETADDR_MISSING:
        raise AnsibleFilterError("onprem.lb.pair_plan needs the Python package netaddr on the controller: install it.")
    return pair.plan(members)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"pair_plan": pair_plan}
