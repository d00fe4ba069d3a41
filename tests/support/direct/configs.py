# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A good configuration of the direct plane, into which tests put faults."""

from __future__ import annotations

import json

API = {
    "name": "api",
    "bind": "192.0.2.100",
    "port": 6443,
    "servers": [
        {"name": "a", "address": "192.0.2.1"},
        {"name": "b", "address": "192.0.2.2", "weight": 2},
        "192.0.2.3",
    ],
    "check": {"type": "https", "path": "/readyz", "interval": 0.5, "fall": 2},
}
API6 = {
    "name": "api6",
    "bind": ["2001:DB8::100"],
    "port": 6443,
    "servers": ["2001:db8::1", "2001:db8::2"],
    "buckets": 8192,
}
GOOD = {"interface": "eth0", "services": [API, API6]}


def written(**changes):
    """Return the good configuration as text, with other values for some of its keys."""
    return json.dumps({**GOOD, **changes})


def with_service(**changes):
    """Return a configuration of one service, with other values for some of its keys."""
    return written(services=[{**API, **changes}])
