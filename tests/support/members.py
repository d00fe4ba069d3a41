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


def session(state: str = "Established", peer: str = "192.0.2.1", **values: Any) -> Dict[str, Any]:
    """Return a session of BGP as `seen` has it."""
    is_up = state == "Established"
    usual = {
        "peer": peer,
        "asn": 64601,
        "family": "ipv4",
        "state": state,
        "sent": int(is_up),
        "bfd": "up" if is_up else "",
    }
    usual.update(seconds=11520 if is_up else None, announces=is_up)
    return {**usual, **values}


def announcer(number: int, reasons: Any = (), sessions: Any = (), **values: Any) -> Dict[str, Any]:
    """Return what the module returns on a member that announces VIPs by BGP.

    :param reasons: by VIP, why its gate has it on lo (serves), or has not; `VIP` serves where none are given
    :param sessions: one that is established where none are given
    """
    found = dict(reasons or {VIP: "serves"})
    vips = [
        {"address": vip, "reason": reason, "detail": DETAILS.get(reason, ""), "elsewhere": []}
        for vip, reason in found.items()
    ]
    announcing = {
        "vips": vips,
        "sessions": list(sessions or [session()]),
        "asn": 64512,
        "connections": 0,
        "direct": [],
        "drained": False,
        "silent": "",
        "sessions_known": True,
        "problems": [],
    }
    announcing.update({key: values.pop(key) for key in [*announcing] if key in values})
    own = {"instances": [], "router": "", "announcing": announcing, "versions": {"haproxy": "2.6.12", "frr": "8.4.4"}}
    return seen(number, [vip for vip, reason in found.items() if reason == "serves"], **{**own, **values})


DETAILS = {"failed": "haproxy_down: 1", "not_known": "not known: haproxy_answers", "held_back": "held back by anna"}


def firewall(**found: Any) -> Dict[str, Any]:
    """Return what the firewall of a member refuses, for `seen`."""
    usual = {"closed": [], "open": [[VIP, 80], [VIP, 443]], "vrrp": [], "chain": "inet filter input", "unknown": ""}
    return {"firewall": {**usual, **found}}


def host(
    name: str, found: Dict[str, Any], members: Any = NAMES, vips: Any = (VIP,), reach: str = "vrrp"
) -> Dict[str, Any]:
    return {
        "name": name,
        "members": list(members),
        "vips": list(vips),
        "engine": "auto",
        "reach": reach,
        "seen": found,
    }


def pair(first: Dict[str, Any], second: Dict[str, Any], **shared: Any) -> List[Dict[str, Any]]:
    return [host("lb1", first, **shared), host("lb2", second, **shared)]
