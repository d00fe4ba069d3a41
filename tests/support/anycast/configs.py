# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A good configuration of the health gate, and its report."""

from __future__ import annotations

NOW = 1_700_000_000.0
GOOD = {
    "vips": [
        {"name": "front", "address": "192.0.2.10", "track": ["haproxy_down", "answers"]},
        {"name": "six", "address": "2001:DB8::10", "track": ["haproxy_down"]},
    ],
    "checks": [
        {"name": "haproxy_down", "type": "file", "file": "/run/haproxy.down"},
        {"name": "answers", "type": "tcp", "address": "127.0.0.1", "port": 443, "interval": 0.5, "fall": 3},
    ],
}
REPORT = {
    "agent": "onprem.lb",
    "version": "1.0.0",
    "pid": 4711,
    "since": NOW - 3700,
    "config": "/etc/onprem-lb-agent/anycast.json",
    "config_sha256": "0" * 64,
    "config_fault": None,
    "limits": [],
    "interface": "lo",
    "interface_up": True,
    "held_back": None,
    "restored": 2,
    "vips": [
        {
            "name": "front",
            "address": "192.0.2.10/32",
            "held": True,
            "since": NOW - 60,
            "wanted": True,
            "reason": "serves",
            "detail": "",
            "track": ["haproxy_down", "answers"],
            "elsewhere": ["eth0"],
        },
        {
            "name": "six",
            "address": "2001:db8::10/128",
            "held": True,
            "since": NOW - 5,
            "wanted": False,
            "reason": "failed",
            "detail": "haproxy_down: 1",
            "track": ["haproxy_down"],
            "elsewhere": [],
        },
    ],
    "checks": [
        {
            "name": "haproxy_down",
            "type": "file",
            "up": False,
            "since": NOW - 5,
            "value": 1,
            "detail": "",
            "known": True,
        }
    ],
}
