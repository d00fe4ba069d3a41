# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Turns variables and host facts into a plan and its forecast: see the .yml of each filter beside this file."""

from __future__ import annotations

import functools
import uuid

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import ipi, members, pair, subnets
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data

LAYOUTS = {"ipi": ipi.plan, "pair": pair.plan}


def with_netaddr(function):
    """Raise an error that names netaddr if the controller lacks it."""

    @functools.wraps(function)
    def guarded(*arguments):
        if subnets.NETADDR_MISSING:
            raise AnsibleFilterError("onprem.lb needs the Python package netaddr on the controller: install it.")
        return function(*arguments)

    return guarded


def layout_plan(given, layout):
    return as_data(LAYOUTS[layout](given))


def auth_pass(given):
    return members.auth_pass(given, new_uuid=lambda: str(uuid.uuid4()))


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "ipi_preset_comparison": with_netaddr(ipi.compare_presets),
            "layout_plan": with_netaddr(layout_plan),
            "members_auth_pass": auth_pass,
            "vrrp_forecast": forecast.vrrp_forecast,
        }
