# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The health gate of anycast VIPs: each is on lo while this host's balancer serves: `agent.pyz anycast`.

A BGP speaker beside it announces what is there. ``gate`` decides, and is pure. ``keeper`` does it, and ``lifecycle`` is
the daemon around both.
"""
