# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report of follow."""

from __future__ import annotations

REPORT = {
    "agent": "onprem.lb",
    "version": "1.0.0",
    "pid": 7,
    "since": 1000.0,
    "config": "/etc/follow.json",
    "config_fault": None,
    "limits": [],
    "label": "master=",
    "nodes": 3,
    "servers": [{"name": "a", "address": "10.0.0.1"}, {"name": "b", "address": "fd00::2"}],
    "problem": None,
    "without_address": ["c"],
    "kept": [],
    "last_change": 1090.0,
    "changes": 4,
    "api": {"server": "https://127.0.0.1:6443", "heard": 1095.0, "fault": None, "errors": 2},
    "balancers": [{"name": "haproxy", "fault": None}, {"name": "proxy", "fault": "it is away."}],
}
