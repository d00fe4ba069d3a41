# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A valid configuration of the VRRP router, into which tests put faults."""

from __future__ import annotations

import copy
import json

FRONT = {
    "name": "front",
    "interface": "eth0",
    "vrid": 51,
    "priority": 254,
    "preempt_delay": 2.5,
    "auth_pass": "geheim12",
    "source": "192.0.2.1",
    "peers": ["192.0.2.2", "192.0.2.3"],
    "addresses": ["192.0.2.10", "192.0.2.11/24"],
    "track": ["alive", {"name": "load", "weight": -10}],
    "garp_refresh": 30,
    "notify": "/usr/local/bin/tell --name 'the front'",
}
SIX = {
    "name": "six",
    "interface": "eth0",
    "vrid": 51,
    "version": 3,
    "advert_interval": 0.07,
    "multicast": True,
    "addresses": ["fe80::10", "2001:DB8::10/64"],
}
CHECKS = [
    {"name": "alive", "type": "process", "process": "haproxy", "interval": 0.5, "fall": 2},
    {"name": "load", "type": "file", "file": "/run/load"},
    {"name": "api", "type": "https", "address": "127.0.0.1", "port": 6443, "path": "/readyz", "host": "api"},
    {"name": "web", "type": "tcp", "address": "::1", "port": 443},
    {"name": "own", "type": "script", "command": "/usr/local/bin/check -x"},
    {"name": "back", "type": "interface", "interface": "eth1"},
]
GOOD = {
    "instances": [FRONT, SIX],
    "sync_groups": [{"name": "both", "instances": ["six"]}],
    "checks": CHECKS,
}


def written(**changes):
    """Return the valid configuration as text, with other values for some top-level keys."""
    return json.dumps({**copy.deepcopy(GOOD), **changes})


def with_front(**changes):
    """Return a configuration with one instance that tracks nothing, with other values for some of its keys."""
    front = {**FRONT, "track": [], **changes}
    return json.dumps({"instances": [front], "checks": CHECKS})
