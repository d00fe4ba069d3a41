# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of a pair as `member_info` reads them, for the status and the switchover."""

from __future__ import annotations

from typing import Any, Dict, List

VIP, SECOND = "192.0.2.10", "192.0.2.20"
NAMES = ("lb1", "lb2")
VERSIONS = {"haproxy": "2.6.12", "keepalived": "2.2.7"}
RECORD = {"to": "lb2", "since": "2026-01-31 12:00 UTC", "by": "anna", "during": "switchover"}
DOWN = {"unreachable": True, "msg": "Failed to connect to the host via ssh: ssh: connect to host: No route to host"}


def instance(vip: str, priority: int, preempt: bool = True) -> Dict[str, Any]:
    return {"name": f"vip-{vip}", "addresses": [vip], "priority": priority, "preempt": preempt, "state": ""}


def seen(number: int, holds: Any = (), **values: Any) -> Dict[str, Any]:
    """Return what the module returns on the member of a number, from 1 on."""
    usual = {
        "engine": "native",
        "balancer": "haproxy.service",
        "versions": VERSIONS,
        "instances": [instance(VIP, 255 - number)],
        "held": [{"address": vip, "seconds": 11520} for vip in holds],
        "answering": {},
        "macs": [f"02:00:00:00:00:0{number}"],
        "ports": [443],
        "ports_of_vips": {VIP: [443], SECOND: [443]},
        "servers": {"total": 2, "up": 2, "others": []},
        "held_back": {},
        "unable": [],
        "stale": [],
        "members": {},
        "written_by": "",
        "resigns_when_killed": True,
        "not_following": [],
        "undo": "",
        "addresses": [f"192.0.2.{number}"],
    }
    return {**usual, **values}


def firewall(**found: Any) -> Dict[str, Any]:
    """Return what the firewall of a member refuses, for `seen`."""
    usual = {"closed": [], "open": [[VIP, 80], [VIP, 443]], "vrrp": [], "chain": "inet filter input", "unknown": ""}
    return {"firewall": {**usual, **found}}


def host(name: str, found: Dict[str, Any], members: Any = NAMES, vips: Any = (VIP,)) -> Dict[str, Any]:
    return {"name": name, "members": list(members), "vips": list(vips), "engine": "auto", "seen": found}


def pair(first: Dict[str, Any], second: Dict[str, Any], **shared: Any) -> List[Dict[str, Any]]:
    return [host("lb1", first, **shared), host("lb2", second, **shared)]
