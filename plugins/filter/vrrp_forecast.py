# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Play every single failure of a plan through the election: see vrrp_forecast.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast


def vrrp_forecast(plan):
    return forecast.foresee(plan)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"vrrp_forecast": vrrp_forecast}
