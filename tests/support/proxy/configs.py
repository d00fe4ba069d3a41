# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A valid configuration of the proxy, into which tests put faults."""

from __future__ import annotations

import copy
import json

WEB = {
    "name": "web",
    "bind": ["*", "::"],
    "port": 443,
    "balance": "leastconn",
    "servers": [
        "192.0.2.1",
        {"name": "b", "address": "2001:DB8::2", "port": 8443, "weight": 5, "backup": True, "maxconn": 40},
    ],
    "check": {
        "type": "https",
        "port": 9000,
        "path": "/readyz",
        "host": "api.example.org",
        "sni": "sni.example.org",
        "status": ["200-299"],
        "interval": 3,
        "fast_interval": 0.5,
        "timeout": 1.5,
        "late_timeout": 10,
        "rise": 3,
        "fall": 2,
        "verify": True,
        "shutdown_sessions": True,
        "slow_start": 60,
        "tcp_user_timeout": 2.5,
    },
    "maxconn": 500,
    "send_proxy": True,
}
DNS = {"name": "dns", "bind": "192.0.2.10", "port": 53, "servers": [{"name": "a", "address": "192.0.2.1"}]}
GOOD = {
    "services": [WEB, DNS],
    "monitors": [
        {"name": "alive", "bind": "127.0.0.1", "port": 9444},
        {"name": "web", "bind": "127.0.0.1", "port": 9444, "path": "/web", "at_least": {"web": 1, "dns": 1}},
    ],
    "timeouts": {"client": 60, "tunnel": 7200, "queue": 30},
    "maxconn": 4000,
    "retries": 5,
    "workers": 2,
    "hard_stop_after": 90.5,
    "stop_within": 2.5,
    "status_socket": "/run/proxy.sock",
    "page": {"bind": "192.0.2.10", "port": 9000},
}


def written(**changes):
    """Return the valid configuration as text, with other values for some top-level keys."""
    return json.dumps({**copy.deepcopy(GOOD), **changes})


def with_service(**changes):
    """Return a configuration with one small service, with other values for some of its keys."""
    return json.dumps({"services": [{**DNS, **changes}]})


def with_check(**check):
    return with_service(check=check)


def with_server(**changes):
    return with_service(servers=[{"name": "a", "address": "192.0.2.1", **changes}])


def with_monitor(**changes):
    return json.dumps({"services": [DNS], "monitors": [{"name": "alive", "port": 9444, **changes}]})
