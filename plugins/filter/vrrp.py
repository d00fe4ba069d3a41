# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""VRIDs, and the VRRP routers of a link."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrid, vrrp_routers


def openshift_vrids(name):
    try:
        return vrid.openshift(name)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"openshift_vrids": openshift_vrids, "survey_table": vrrp_routers.survey}
