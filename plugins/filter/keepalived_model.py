# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Complete and check what keepalived is to hold: see keepalived_model.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import instances


def keepalived_model(settings):
    return instances.model(settings)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"keepalived_model": keepalived_model}
