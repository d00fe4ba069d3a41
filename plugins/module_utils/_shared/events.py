# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The failures that a forecast simulates and a drill injects. Pure.

They are named after the native engine; on a host of the agent its balancer and its router fail in their place.
"""

from __future__ import annotations

HAPROXY_KILLED, HAPROXY_STOPPED, HAPROXY_RELOADED = "haproxy_killed", "haproxy_stopped", "haproxy_reloaded"
KEEPALIVED_KILLED, KEEPALIVED_STOPPED = "keepalived_killed", "keepalived_stopped"
HAPROXY_HUNG = "haproxy_hung"
DIRECT_DOWN = "direct_down"
BOTH_RELOADED = "both_reloaded"
HOST_CUT, HOST_REBOOTED, VRRP_LOST = "host_cut", "host_rebooted", "vrrp_lost"
PORT_DOWN, LINK_FLAPPING = "port_down", "link_flapping"
SLOW_BACKEND, CONNTRACK_FULL, DISK_FULL = "slow_backend", "conntrack_full", "disk_full"
STRANGER_WITH_VIP = "stranger_with_vip"
SERVER_CUT, SERVER_ENDED, SERVER_HUNG = "server_cut", "server_ended", "server_hung"
ON_SERVER = (SERVER_CUT, SERVER_ENDED, SERVER_HUNG)  # one server is lost for the balancer of the holder
API_FAILING = "api_failing"  # of a cluster, by commands of the user

EVENTS = (
    HAPROXY_KILLED,
    HAPROXY_STOPPED,
    HAPROXY_HUNG,
    HAPROXY_RELOADED,
    DIRECT_DOWN,
    KEEPALIVED_KILLED,
    KEEPALIVED_STOPPED,
    BOTH_RELOADED,
    HOST_CUT,
    PORT_DOWN,
    LINK_FLAPPING,
    VRRP_LOST,
    SLOW_BACKEND,
    CONNTRACK_FULL,
    DISK_FULL,
    STRANGER_WITH_VIP,
    *ON_SERVER,
    HOST_REBOOTED,
)
# What a drill injects on request only: two hosts hold a VIP for as long as it lasts, whatever the plan; clients
# wait meanwhile; what else the host does cannot connect, or cannot write; what manages its network may have its own
# way with a link; or the drill cannot revert it; or only some members have what fails.
ON_REQUEST = (
    DIRECT_DOWN,
    VRRP_LOST,
    SLOW_BACKEND,
    CONNTRACK_FULL,
    DISK_FULL,
    STRANGER_WITH_VIP,
    *ON_SERVER,
    PORT_DOWN,
    LINK_FLAPPING,
    HOST_REBOOTED,
)
# Failures in which connections are accepted that nobody serves, or serves late: only an answer shows it.
ACCEPTING = (HAPROXY_HUNG, SLOW_BACKEND, *ON_SERVER, API_FAILING)
SLOW_CONNECT_MS = 1000  # a first SYN that is lost is sent again so much later (RFC 6298, section 2)
SLOW_FOR_MS = 6000  # how long a drill lets servers be slow: longer than a few checks of them
FULL_FOR_MS = 6000  # how long a drill lets a disk be full: longer than a few checks
STRANGER_FOR_MS = 6000  # how long a drill lets a stranger have the VIP: longer than it takes to announce it


def flap_seconds(advert_interval: float) -> float:
    """Return for how long a link that flaps is down, and then up: too short for its router to become Active again."""
    return min(1.0, advert_interval)
