# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lay out what several hosts heard: see survey_table.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._shared import vrrp_routers


def survey_table(hosts):
    return vrrp_routers.survey(hosts)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"survey_table": survey_table}
