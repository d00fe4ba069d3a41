# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The collection's model in the embedded agent's words: see agent_config.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent


def agent_config(settings, listeners=(), host=""):
    return agent.translate(settings, listeners=listeners, host=host)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"agent_config": agent_config}
