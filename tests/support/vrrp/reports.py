# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A status report of the router, as the daemon makes it, with a value in every field."""

from __future__ import annotations

NOW = 1_800_000_000.0

FRONT = {
    "name": "front",
    "interface": "eth0",
    "vrid": 51,
    "version": 2,
    "family": 4,
    "multicast": False,
    "state": "Active",
    "since": NOW - 3 * 86400 - 4 * 3600,
    "reason": "no Advertisement was heard",
    "priority": {"configured": 254, "effective": 244, "because": [{"name": "load", "change": -10}]},
    "waiting_for": [],
    "addresses": ["192.0.2.10/32", "192.0.2.11/32"],
    "held": ["192.0.2.10/32"],
    "virtual_routes": ["10.0.0.0/8 via 192.0.2.254 dev eth0"],
    "source": "192.0.2.1",
    "peers": ["192.0.2.2"],
    "group": None,
    "last_advertisement": {"source": "192.0.2.2", "priority": 253, "at": NOW - 0.5, "age": 0.5},
    "rivals": [{"source": "192.0.2.3", "priority": 50, "since": NOW - 5}],
    "other_holders": [{"address": "192.0.2.10", "macs": ["02:00:00:00:00:09"]}],
    "sent": 12,
    "received": 3,
    "lower": 4,
    "transitions": 2,
    "takeovers": 1,
    "discarded": {"checksum": 1},
}
SIX = {
    **FRONT,
    "name": "six",
    "version": 3,
    "family": 6,
    "state": "Fault",
    "since": NOW - 70,
    "reason": "haproxy failed",
    "priority": {"configured": 254, "effective": 254, "because": [{"name": "haproxy", "change": None}]},
    "waiting_for": [],
    "addresses": ["2001:db8::10/128"],
    "held": ["2001:db8::10/128"],
    "group": "both",
    "last_advertisement": None,
    "rivals": [],
    "other_holders": [],
    "discarded": {},
}
NEW = {
    **SIX,
    "name": "new",
    "state": "Initialize",
    "since": NOW,
    "reason": "start",
    "priority": {"configured": 100, "effective": 100, "because": []},
    "waiting_for": ["api", "haproxy"],
    "held": [],
}
REPORT = {
    "agent": "onprem.lb",
    "version": "1.0.0",
    "pid": 4711,
    "since": NOW - 3 * 86400 - 4 * 3600,
    "config": "/etc/onprem-lb-agent/vrrp.json",
    "config_fault": "instances[0] (front).vrid is 300: a VRID from 1 to 255 is required.",
    "limits": ["real-time scheduling: Operation not permitted (it needs CAP_SYS_NICE)"],
    "instances": [FRONT, SIX, NEW],
    "groups": [{"name": "both", "instances": ["six", "new"], "state": "Fault"}],
    "checks": [
        {
            "name": "haproxy",
            "type": "process",
            "up": False,
            "since": NOW - 70,
            "value": 0,
            "detail": "no process",
            "known": True,
        },
        {"name": "load", "type": "file", "up": True, "since": NOW - 5, "value": 1, "detail": "", "known": True},
        {"name": "api", "type": "https", "up": None, "since": None, "value": 0, "detail": "", "known": False},
    ],
}
QUIET = {
    **REPORT,
    "config_fault": None,
    "limits": [],
    "instances": [],
    "groups": [],
    "checks": [],
}
