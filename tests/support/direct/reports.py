# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report of the direct plane."""

from __future__ import annotations

CHECK = {"type": "tcp", "up": True, "at": 990.0, "took": 0.0012, "detail": "connected"}
FAILED = {**CHECK, "up": False, "detail": "connection refused"}
UP = {
    "name": "a",
    "address": "192.0.2.1",
    "mac": "02:00:00:00:00:01",
    "weight": 1,
    "state": "up",
    "since": 400.0,
    "order": "ready",
    "owner": True,
    "proven": True,
    "second_chances": True,
    "path_fault": None,
    "packets": 1234,
    "unanswered_attempts": 0,
    "check": CHECK,
}
NEW = {**UP, "owner": False, "proven": False, "packets": 0}  # it gets nothing yet
DOWN = {**NEW, "name": "b", "address": "192.0.2.2", "mac": None, "state": "down"}
REPORT = {
    "agent": "onprem.lb",
    "version": "1.0.0",
    "pid": 4712,
    "since": 400.0,
    "config": "/etc/onprem-lb-agent/direct.json",
    "config_sha256": "0" * 64,
    "config_fault": None,
    "limits": [],
    "interface": "eth0",
    "mtu_fault": None,
    "up": True,
    "table": {
        "in_force": True,
        "written_at": 940.0,
        "took": 0.03125,
        "fault": None,
        "transactions": 5,
        "whole": 2,
        "refused": 1,
        "restored": 3,
    },
    "services": [
        {
            "name": "api",
            "bind": ["192.0.2.100"],
            "port": 6443,
            "buckets": 4096,
            "new_connections": "servers",
            "state": "up",
            "usable": 1,
            "kept": False,
            "servers": [UP, {**DOWN, "check": FAILED}],
        }
    ],
}
