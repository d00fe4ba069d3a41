# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Complete and check what haproxy is to serve: see haproxy_model.yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy


def haproxy_model(settings, listeners, host):
    return haproxy.model(settings, listeners, host)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"haproxy_model": haproxy_model}
