# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A status report of the proxy, as the master makes it, with a value in every field."""

from __future__ import annotations

NOW = 1_800_000_000.0

COUNTS = {
    "sessions": 120_000,
    "bytes_in": 5_400_000,
    "bytes_out": 7_100_000_000,
    "current": 42,
    "qcur": 6,
    "qmax": 17,
    "connect_errors": 3,
    "retries": 2,
    "resets": 1,
    "refused": 4,
    "rates": {"sessions": 51.5, "bytes_in": 2_345.0, "bytes_out": 8_900_000.0},
}
NOTHING = {
    **dict.fromkeys(COUNTS, 0),
    "rates": {"sessions": 0, "bytes_in": 0, "bytes_out": 0},
}
A = {
    "name": "a",
    "address": "192.0.2.1",
    "port": 8080,
    "backup": False,
    "maxconn": 50,
    "weight": {"configured": 3, "effective": 0.75},
    "state": "up",
    "since": NOW - 70,
    "order": "ready",
    "check": {"type": "http", "up": True, "at": NOW - 1.5, "took": 0.0123, "detail": "status 200"},
    **COUNTS,
}
B = {
    **A,
    "name": "b",
    "address": "2001:db8::2",
    "backup": True,
    "weight": {"configured": 1, "effective": 1},
    "state": "down",
    "check": {"type": "http", "up": False, "at": NOW - 0.5, "took": 0.0004, "detail": "connection refused"},
    **NOTHING,
}
NEW = {
    **B,
    "name": "new",
    "backup": False,
    "state": "maint",
    "order": "maint",
    "check": {"type": "tcp", "up": None, "at": None, "took": None, "detail": ""},
}
UNCHECKED = {**B, "name": "x", "state": "drain", "order": "drain", "check": {**NEW["check"], "type": "none"}}
WEB = {
    "name": "web",
    "bind": ["*", "2001:db8::80"],
    "port": 80,
    "mode": "http",
    "balance": "roundrobin",
    "maxconn": 100,
    "state": "up",
    "usable": 1,
    "servers": [A, B, NEW],
    **COUNTS,
}
API = {**WEB, "name": "api", "port": 6443, "state": "down", "usable": 0, "servers": [UNCHECKED], **NOTHING}
REPORT = {
    "agent": "onprem.lb",
    "version": "1.0.0",
    "pid": 815,
    "host": "lb1",
    "since": NOW - 3 * 86400 - 4 * 3600,
    "config": "/etc/onprem-lb-agent/proxy.json",
    "config_fault": "services[0] (web).port is 0: a port from 1 to 65535 is required.",
    "limits": ["the user haproxy: only root can become another one than nobody"],
    "state": "draining",
    "workers": [
        {"pid": 816, "generation": 2, "state": "serving", "since": NOW - 5, "current": 40},
        {"pid": 814, "generation": 1, "state": "draining", "since": NOW - 999, "current": 2},
    ],
    "maxconn": 10_000,
    "services": [WEB, API],
    "monitors": [
        {"name": "alive", "bind": ["127.0.0.1"], "port": 9444, "path": "/", "good": True, "detail": ""},
        {"name": "api", "bind": ["*"], "port": 9454, "path": "/x", "good": False, "detail": "api has 0 of 1 servers"},
    ],
}
QUIET = {
    **REPORT,
    "config_fault": None,
    "limits": [],
    "state": "serving",
    "workers": [],
    "services": [],
    "monitors": [],
}
