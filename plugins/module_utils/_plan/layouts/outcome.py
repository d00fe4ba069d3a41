# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run says at its end: who holds each VIP, what changed where, what was not proved, what to run next. Pure.

A member is ``{name, engine, vips, held, packages, files, unloaded, steps, statistics}``: its name in the inventory, its
engine, the VIPs of its pair or cluster, those of them that it holds, or None if that was not verified, the packages
that were installed, the files that were written, a sentence for each that was as wanted and not in force, the agent's
steps, and the variables of the statistics page.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ..._agent.config.schema import read
from ..._shared.engines import AGENT
from ..model.haproxy import STATS

Member = Dict[str, Any]


def lines(members: List[Member], outside: List[str], dry: bool, silent: Sequence[str] = ()) -> List[str]:
    """Return the lines.

    :param outside: the names of the members outside `--limit`
    :param dry: whether it was a run in check mode
    :param silent: those of them that do not answer
    """
    said = [*_holders(members), *_changes(members, dry)]
    if not dry:
        said += _unproved(members, outside)
    said += _statistics(members)
    if dry:
        return [*said, "Next: the same without --check."]
    if silent:
        said.append(f"Next: when {', '.join(silent)} answers, the same without --limit, which brings it up to date.")
    return [*said, "Next: onprem.lb.drill causes each failure, and measures for how long a VIP is gone."]


def _holders(members: List[Member]) -> List[str]:
    found = []
    for vip in dict.fromkeys(vip for member in members for vip in member["vips"]):
        sharing = [member for member in members if vip in member["vips"]]
        if any(member["held"] is None for member in sharing):
            continue
        holders = [member["name"] for member in sharing if vip in member["held"]]
        found.append(f"{vip} is held by {holders[0] if holders else 'a member outside --limit'}.")
    return found


def _changes(members: List[Member], dry: bool) -> List[str]:
    """Return a line for all members with the same changes."""
    names: Dict[str, List[str]] = {}
    for member in members:
        names.setdefault(_change(member, dry), []).append(member["name"])
    return [f"{', '.join(same)}: {change}" for change, same in names.items()]


def _change(member: Member, dry: bool) -> str:
    steps = [f"install {', '.join(member['packages'])}"] if member["packages"] else []
    steps += [f"write {', '.join(member['files'])}"] if member["files"] else []
    steps += [f"load anew, because {sentence.rstrip('.')}" for sentence in member["unloaded"]]
    steps += member["steps"]
    if not steps:
        return "nothing would change." if dry else "nothing changed."
    return f"{'to do' if dry else 'done'}: {'; '.join(steps)}."


def _unproved(members: List[Member], outside: List[str]) -> List[str]:
    unverified = [member["name"] for member in members if member["held"] is None]
    found = [f"Not verified: {', '.join([*unverified, *outside])}."] if unverified or outside else []
    return [*found, "Not proved: that each VIP moves as forecast."]


def _statistics(members: List[Member]) -> List[str]:
    """Return where the statistics are, once where all members have them at one place."""
    places: Dict[str, List[str]] = {}
    for member in members:
        given = {key: value for key, value in member["statistics"].items() if value != ""}
        stats = read(STATS, given, "haproxy_stats", [])  # its faults are known since the plan
        if stats["enabled"]:
            host = f"[{stats['address']}]" if ":" in stats["address"] else stats["address"]
            path = "/" if member["engine"] == AGENT else stats["uri"]
            places.setdefault(f"http://{host}:{stats['port']}{path}", []).append(member["name"])
    return [f"Statistics on {', '.join(names)}: {place}" for place, names in places.items()]
