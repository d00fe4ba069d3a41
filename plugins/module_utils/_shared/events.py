# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The failures that a forecast simulates and a drill injects. Pure.

They are named after the native engine; on a host of the agent its balancer and its router fail in their place.
"""

from __future__ import annotations

HAPROXY_KILLED, HAPROXY_STOPPED, HAPROXY_RELOADED = "haproxy_killed", "haproxy_stopped", "haproxy_reloaded"
KEEPALIVED_KILLED, KEEPALIVED_STOPPED = "keepalived_killed", "keepalived_stopped"
HAPROXY_HUNG = "haproxy_hung"
BOTH_RELOADED = "both_reloaded"
HOST_CUT, VRRP_LOST = "host_cut", "vrrp_lost"

EVENTS = (
    HAPROXY_KILLED,
    HAPROXY_STOPPED,
    HAPROXY_HUNG,
    HAPROXY_RELOADED,
    KEEPALIVED_KILLED,
    KEEPALIVED_STOPPED,
    BOTH_RELOADED,
    HOST_CUT,
    VRRP_LOST,
)
# Two members hold a VIP for as long as it lasts, whatever the plan: a drill injects it on request only.
COSTLY = (VRRP_LOST,)
