# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a drill plays, and in which order. Pure; runs on the controller.

A round is one event played once.
"""

from __future__ import annotations

from typing import Any, Dict, List

AFTER = 3.0  # seconds between arming an event and its start, in which the probe gets going
MARGIN = 1.5  # seconds that a failure lasts longer than the plan allows for the VIP to move
PATIENCE = 10.0  # seconds in which a harmless failure must stay one: longer than any check takes to notice it
MOST = 15.0  # seconds that are waited for the first holder to be back


def rounds(plan: Dict[str, Any], events: List[str], repeats: int) -> List[Dict[str, Any]]:
    """Return the rounds of a drill: every event on every VIP, ``repeats`` times.

    :param plan: as `layout_plan` returns it
    """
    ports: Dict[str, int] = {}
    for address, port in plan["targets"]:
        ports.setdefault(address, port)
    lines = [line for line in plan["outages"] if line["event"] in events and line["vip"] in ports]
    return [
        {**_round(line, plan), "port": ports[line["vip"]], "repeat": repeat + 1}
        for line in sorted(lines, key=lambda line: events.index(line["event"]))
        for repeat in range(repeats)
    ]


def _round(line: Dict[str, Any], plan: Dict[str, Any]) -> Dict[str, Any]:
    """One event on one VIP: how long it lasts, how long it is watched, and what the plan foresees."""
    delays = [
        instance["preempt_delay"] for member in plan["members"].values() for instance in member["router"]["instances"]
    ]
    harmless = line["before"] == line["after"] and line["outage_ms"] > 0
    undo_after = max(line["outage_ms"] / 1000, PATIENCE if harmless else 0) + MARGIN
    minimum = AFTER + undo_after + 0.5
    most = MOST + 4 * plan["advert_interval"] + max(delays)
    return {
        "event": line["event"],
        "vip": line["vip"],
        "foreseen": line,
        # Where nobody preempts whoever holds the VIP keeps it, so the event is played there; and as after some failures
        # the first holder has it again all the same, every failure of the VIP must bring it back to count as that.
        "holder": line["before"] if _always_returns(line["vip"], plan) else "",
        "settle": 2 * most,
        "undo_after": undo_after,
        "after": AFTER,
        "minimum": minimum,
        "duration": minimum + most,
    }


def _always_returns(vip: str, plan: Dict[str, Any]) -> bool:
    return all(line["back"] == line["before"] for line in plan["outages"] if line["vip"] == vip)


def members_by_mac(members: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return ``{name, macs}`` of each member, so that an answer on the wire can be told to be its."""
    return [
        {"name": member["name"], "macs": sorted({info["mac"] for info in _on_a_link(member["host"]["addresses"])})}
        for member in members
    ]


def _on_a_link(addresses: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    return [info for info in addresses if info["interface"] != "lo" and info["mac"]]
