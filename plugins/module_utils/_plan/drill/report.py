# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the measurements of a drill say about the plan. Pure; runs on the controller.

What `vip_probe` measured in a round is its ``seen``.
"""

from __future__ import annotations

import statistics
from typing import Any, Dict, List

SLACK_MS = 15.0  # a probe's own grid and its way to the server, which silence includes and an outage does not
ENOUGH = 3  # rounds, of which one may be faulty: it may have met a busy moment of the hosts


def in_doubt(played: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the rounds to play again: those that bring every event with a faulty round to three.

    :param played: as `report` takes it
    """
    again = []
    for group in _grouped(played):
        because = _because(group)
        if because:
            bare = {key: value for key, value in group[0].items() if key not in ("member", "seen")}
            again += [{**bare, "repeat": repeat + 1, "because": because} for repeat in range(len(group), ENOUGH)]
    return again


def report(played: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return ``{rows, table, faults}``: one row for each event and VIP.

    Each round is judged by itself. A row fails when more than a third of its rounds are faulty.

    :param played: the rounds, each with ``member`` (where it was played), ``interval_ms`` (of the probe) and ``seen``;
        those that `in_doubt` returned have ``because``
    """
    rows = [_row(group) for group in _grouped(played)]
    faults = [f"{row['vip']}, {row['event']}: {why}" for row in rows for why in row["faults"]]
    return {"rows": rows, "table": table(rows), "faults": faults}


def _grouped(played: List[Dict[str, Any]]) -> List[List[Dict[str, Any]]]:
    groups: Dict[Any, List[Dict[str, Any]]] = {}
    for item in played:
        groups.setdefault((item["vip"], item["event"]), []).append(item)
    return list(groups.values())


def _row(played: List[Dict[str, Any]]) -> Dict[str, Any]:
    group = [item for item in played if not _missed(item)] or played
    outages = [item["seen"]["takeover"]["outage_ms"] for item in group]
    seen = [item["seen"] for item in group]
    faulty = sum(bool(_faults(item)) for item in played)
    broken = _broken(played)
    return {
        "event": group[0]["event"],
        "vip": group[0]["vip"],
        "before": sorted({item["holder_before"] for item in seen if item["holder_before"]}),
        "after": sorted({holder for holder in map(_successor, seen) if holder}),
        "outage_ms": round(statistics.median(outages), 1),
        "outages_ms": outages,
        "worst_ms": max(outages),
        "limit_ms": group[0]["foreseen"]["outage_ms"],
        "silence_ms": round(statistics.median(item["takeover"]["silence_ms"] for item in seen), 1),
        "comeback_ms": round(statistics.median(item["comeback"]["outage_ms"] for item in seen), 1),
        "tried": sum(item["tried"] for item in seen),
        "failed": sum(item["failed_attempts"] for item in seen),
        "most_holders": max(item["most_holders"] for item in seen),
        "two_holders_ms": max(item["two_holders_ms"] for item in seen),
        "two_holders_limit_ms": group[0]["foreseen"]["two_holders_ms"],
        "no_holder_ms": max(item["no_holder_ms"] for item in seen),
        "rounds": len(played),
        "faulty": faulty,
        "repeated": sum("because" in item for item in played),
        "because": _because(played),
        "broken": broken,
        "faults": broken if ENOUGH * faulty > len(played) else [],
    }


def _because(played: List[Dict[str, Any]]) -> str:
    """Return the first fault of several rounds, or nothing."""
    return next((why for item in played for why in _faults(item)), "")


def _broken(played: List[Dict[str, Any]]) -> List[str]:
    """Return every fault, each with the round that it was found in."""
    return [f"round {number} of {len(played)}: {why}" for number, item in enumerate(played, 1) for why in _faults(item)]


def _successor(seen: Dict[str, Any]) -> str:
    """Return the first sole holder after the one before, or that one when the VIP stayed."""
    for step in seen["timeline"]:
        if len(step["holders"]) == 1 and step["holders"] != [seen["holder_before"]]:
            return str(step["holders"][0])
    return seen["holder_before"] or ""


def _faults(item: Dict[str, Any]) -> List[str]:
    """Return a sentence for each way in which one round broke the plan."""
    if _missed(item):
        return [f"{item['member']} did not hold the VIP when the probe began: nothing was measured."]
    found = [_gone(item), _shared(item), _astray(item), _returned(item)]
    return [sentence for sentence in found if sentence]


def _gone(item: Dict[str, Any]) -> str:
    """Say for how long nobody was served, if the plan says less."""
    takeover, limit = item["seen"]["takeover"], item["foreseen"]["outage_ms"]
    if takeover["outage_ms"] > limit:
        return f"the VIP was gone for {takeover['outage_ms']} ms, the plan says at most {limit} ms."
    if limit and takeover["silence_ms"] > limit + SLACK_MS:
        # Connections that a former holder kept and passed on succeed late: nothing failed, and nobody was served.
        return f"nothing answered for {takeover['silence_ms']} ms, the plan says at most {limit} ms."
    return ""


def _shared(item: Dict[str, Any]) -> str:
    """Say for how long there were two holders, if the plan says less.

    One question may meet the very moment of a hand-over, and both answer; the next one is an interval later.
    """
    shared, limit = item["seen"]["two_holders_ms"], item["foreseen"]["two_holders_ms"]
    if shared > limit + item["interval_ms"]:
        return f"two members held the VIP for {shared} ms, the plan says at most {limit} ms."
    return ""


def _returned(item: Dict[str, Any]) -> str:
    """Say what the return of the first holder cost, if the plan says less."""
    cost, foreseen = item["seen"]["comeback"]["outage_ms"], item["foreseen"]
    if foreseen["back"] != foreseen["after"] and cost > foreseen["back_ms"]:
        return f"the return took {cost} ms, the plan says at most {foreseen['back_ms']} ms."
    return ""


def _missed(item: Dict[str, Any]) -> bool:
    """Whether the VIP had left before anything was measured."""
    return bool(item["seen"]["holders_known"]) and item["seen"]["holder_before"] != item["member"]


def _astray(item: Dict[str, Any]) -> str:
    """Say where the VIP went, or came back to, if the plan says otherwise."""
    seen, foreseen = item["seen"], item["foreseen"]
    if not seen["holders_known"]:
        return ""
    went = _successor(seen)
    if foreseen["before"] != item["member"]:  # the VIP was on another member, which is as well where nobody preempts
        stayed = went == item["member"] and foreseen["before"] != foreseen["after"]
        return f"the VIP stayed on {went}." if stayed else ""
    # A killed keepalived may be back before anybody misses it.
    if went != foreseen["after"] and (item["event"], went) != ("keepalived_killed", item["member"]):
        return f"the VIP stayed on {went}." if went == item["member"] else _elsewhere(went, foreseen["after"])
    if item["holder"] and seen["holder_after"] != foreseen["back"]:
        return "after the return " + _elsewhere(seen["holder_after"], foreseen["back"])
    return ""


def _elsewhere(found: str, foreseen: str) -> str:
    return f"the VIP was on {found or 'no member'}, the plan says {foreseen}."


def table(rows: List[Dict[str, Any]]) -> List[str]:
    """Return the rows as aligned lines, in Markdown, so that they can be pasted anywhere."""
    head = [
        "VIP",
        "event",
        "before",
        "after",
        "outage",
        "silence",
        "worst",
        "plan",
        "return",
        "failed/tried",
        "two holders/plan",
        "faulty/rounds",
        "repeated",
        "because",
    ]
    cells = [head, *([_cell(row, column) for column in head] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _cell(row: Dict[str, Any], column: str) -> str:
    cells = {
        "VIP": row["vip"],
        "event": row["event"].replace("_", " "),
        "before": ", ".join(row["before"]) or "unknown",
        "after": ", ".join(row["after"]) or "unknown",
        "outage": f"{row['outage_ms']:.0f} ms",
        "silence": f"{row['silence_ms']:.0f} ms",
        "worst": f"{row['worst_ms']:.0f} ms",
        "plan": f"{row['limit_ms']} ms",
        "return": f"{row['comeback_ms']:.0f} ms",
        "failed/tried": f"{row['failed']}/{row['tried']}",
        "two holders/plan": f"{row['two_holders_ms']:.0f}/{row['two_holders_limit_ms']} ms",
        "faulty/rounds": f"{row['faulty']}/{row['rounds']}",
        "repeated": str(row["repeated"]),
        "because": row["because"],
    }
    return cells[column]
