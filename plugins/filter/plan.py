# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Variables and what hosts say become a plan and its forecast: see the .yml of each filter beside this file."""

from __future__ import annotations

import functools
import uuid

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import ipi, members, pair, subnets


def with_netaddr(plan):
    """Say what is missing on the controller, and not only that something is."""

    @functools.wraps(plan)
    def planned(*arguments, **keywords):
        if subnets.NETADDR_MISSING:
            raise AnsibleFilterError("onprem.lb needs the Python package netaddr on the controller: install it.")
        return plan(*arguments, **keywords)

    return planned


def auth_pass(found):
    return members.auth_pass(found, fresh=lambda: str(uuid.uuid4()))


def assumed_host(vips, host, rank, interface=""):
    return subnets.placeholder_host(vips, str(host), int(rank), interface)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {
            "ipi_plan": with_netaddr(ipi.plan),
            "ipi_side_by_side": with_netaddr(ipi.side_by_side),
            "pair_assumed_host": with_netaddr(assumed_host),
            "pair_auth_pass": auth_pass,
            "pair_plan": with_netaddr(pair.plan),
            "vrrp_forecast": forecast.vrrp_forecast,
        }
