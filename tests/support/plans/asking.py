# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `host_info` reads of who asks the balancer, from files that are given. It needs no Ansible."""

from __future__ import annotations

from unittest import mock

from ansible_collections.onprem.lb.plugins.module_utils._host.read import answered, asking
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import ROUTERS

ASKED = {"keepalived_config": "/etc/keepalived/keepalived.conf", "agent_config": "/etc/onprem-lb-agent/vrrp.json"}


class Files:
    """Reads files that are a mapping, and a redirect that is in force."""

    def __init__(self, texts, in_force=""):
        self.text = lambda path: texts.get(path, "")
        self.find = lambda name: f"/usr/sbin/{name}" if in_force else None
        self.run = lambda command: (0, in_force, "")


def asked(texts, in_force="", own=(), active=ROUTERS):
    """Return what is asked of a host with these files, on which everything answers and every router runs."""
    with mock.patch.object(answered, "of", set):
        return asking.read(Files(texts, in_force), ASKED, own, active)
