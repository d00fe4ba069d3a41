# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters that turn a role's variables into what it renders. The .yml beside this file describe each of them."""

from __future__ import annotations

from ansible.utils.display import Display
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, haproxy, instances, variables

DISPLAY = Display()


def agent_config(settings, listeners=(), host="", addresses=()):
    return agent.translate(settings, listeners=listeners, host=host, addresses=addresses)


def unknown_variables(names, known, owner="role", shared=False):
    """Return the faults, and show the warnings."""
    found = variables.unknown_variables(names, known, owner, shared)
    for warning in found.warnings:
        DISPLAY.warning(warning)
    return found.faults


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "agent_config": agent_config,
            "haproxy_model": haproxy.model,
            "keepalived_model": instances.keepalived_model,
            "unfit_faults": variables.unfit_faults,
            "unknown_variables": unknown_variables,
        }
