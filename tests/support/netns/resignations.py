# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resignations that a test sends in the name of a member.

They begin a test with a long advertisement interval: a Backup that hears one waits for Skew_Time only. Later in such a
test, what comes before support.waiting.LIMIT_S cannot have waited for Active_Down_Interval.
"""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf, resignation, senders
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import netlink, sockets

from support.netns.namespaces import inside

LONG = 40  # seconds: three of them are more than LIMIT_S, and version 3 has room for no more than 40.95


def resign(node, text, vip=""):
    """Send priority 0 for each instance of a keepalived.conf, or only for the one of a VIP."""
    with inside(node.namespace):
        kernel = netlink.Netlink()
        there = kernel.links(), kernel.addresses()
        for router in (each for each in conf.routers(text) if vip in ("", *each.advertised)):
            to = resignation.destinations(router)
            for _destination, send in senders.senders(router, 0, to, there, sockets.open_socket):
                send()
