# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rulesets for nft: api_redirect.yml describes the filter."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect


def api_redirect(vips, port, to_port=None, direct_interface=""):
    try:
        return nft_redirect.ruleset(vips, port if to_port is None else {port: to_port}, direct_interface)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"api_redirect": api_redirect}
