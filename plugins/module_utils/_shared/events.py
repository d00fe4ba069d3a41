# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The failures that a forecast simulates and a drill injects. Pure.

They are named after the native engine; on a host of the agent its balancer and its router fail in their place.
"""

from __future__ import annotations

from typing import NamedTuple

HAPROXY_KILLED, HAPROXY_STOPPED, HAPROXY_RELOADED = "haproxy_killed", "haproxy_stopped", "haproxy_reloaded"
KEEPALIVED_KILLED, KEEPALIVED_STOPPED = "keepalived_killed", "keepalived_stopped"
HAPROXY_HUNG = "haproxy_hung"
DIRECT_DOWN = "direct_down"
BOTH_RELOADED = "both_reloaded"
HOST_CUT, HOST_REBOOTED, VRRP_LOST = "host_cut", "host_rebooted", "vrrp_lost"
PORT_DOWN, LINK_FLAPPING = "port_down", "link_flapping"
SLOW_BACKEND, CONNTRACK_FULL, DISK_FULL = "slow_backend", "conntrack_full", "disk_full"
STRANGER_WITH_VIP = "stranger_with_vip"
SERVER_CUT, SERVER_ENDED, SERVER_HUNG, SERVER_BACK = "server_cut", "server_ended", "server_hung", "server_back"
PATH_WITHDRAWN, PATH_BACK, ROUTER_GONE = "path_withdrawn", "path_back", "router_gone"
BGP_KILLED, BFD_LOST = "bgp_killed", "bfd_lost"
OF_BGP = (PATH_WITHDRAWN, PATH_BACK, ROUTER_GONE, BGP_KILLED, BFD_LOST)  # where BGP carries the VIPs, and nowhere else
# One server is lost for the balancer of the holder; with the last one its return is measured.
ON_SERVER = (SERVER_CUT, SERVER_ENDED, SERVER_HUNG, SERVER_BACK)
API_FAILING = "api_failing"  # of a cluster, by commands of the user


class Event(NamedTuple):
    """A failure.

    :ivar on_request: why a drill injects it on request only; '' where it does by default
    :ivar accepting: whether connections are accepted that nobody serves, or serves late: only an answer shows it
    """

    name: str
    on_request: str = ""
    accepting: bool = False


_SPLIT = "two hosts hold a VIP for as long as it lasts, whatever the plan"
_WAIT = "clients wait meanwhile"
_MANAGED = "what manages the host's network may have its own way with a link"
ROWS = (
    Event(HAPROXY_KILLED),
    Event(HAPROXY_STOPPED),
    Event(HAPROXY_HUNG, accepting=True),
    Event(HAPROXY_RELOADED),
    Event(DIRECT_DOWN, "only some members have what fails"),
    Event(KEEPALIVED_KILLED),
    Event(KEEPALIVED_STOPPED),
    Event(BOTH_RELOADED),
    Event(HOST_CUT),
    Event(PATH_WITHDRAWN),
    Event(PATH_BACK),
    Event(ROUTER_GONE, "only a member with a router on a link of its own has what fails"),
    Event(BGP_KILLED),
    Event(BFD_LOST),
    Event(PORT_DOWN, _MANAGED),
    Event(LINK_FLAPPING, _MANAGED),
    Event(VRRP_LOST, _SPLIT),
    Event(SLOW_BACKEND, _WAIT, accepting=True),
    Event(CONNTRACK_FULL, "what else the host does cannot connect"),
    Event(DISK_FULL, "what else the host does cannot write"),
    Event(STRANGER_WITH_VIP, _SPLIT),
    *(Event(name, _WAIT, accepting=True) for name in ON_SERVER),
    Event(HOST_REBOOTED, "the drill cannot revert it"),
)
EVENTS = tuple(row.name for row in ROWS)
ON_REQUEST = tuple(row.name for row in ROWS if row.on_request)
ACCEPTING = (*(row.name for row in ROWS if row.accepting), API_FAILING)
SLOW_CONNECT_MS = 1000  # a first SYN that is lost is sent again so much later (RFC 6298, section 2)
SLOW_FOR_MS = 6000  # how long a drill lets servers be slow: longer than a few checks of them
FULL_FOR_MS = 6000  # how long a drill lets a disk be full: longer than a few checks
STRANGER_FOR_MS = 6000  # how long a drill lets a stranger have the VIP: longer than it takes to announce it


def flap_seconds(advert_interval: float) -> float:
    """Return for how long a link that flaps is down, and then up: too short for its router to become Active again."""
    return min(1.0, advert_interval)
