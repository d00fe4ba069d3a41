# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Assume what a member would say of itself: see pair_assumed_host.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import subnets


def pair_assumed_host(vips, host, rank, interface=""):
    return subnets.assumed_host(vips, str(host), int(rank), interface)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"pair_assumed_host": pair_assumed_host}
