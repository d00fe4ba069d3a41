# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record that is kept of each drill, and how a drill compares with those before. Pure; runs on the controller."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..._agent import VERSION
from ..._shared import sealed
from ..model import drill_records

FEWEST = 5  # drills: the percentiles of fewer say nothing
HIGH = 95
SECRETS = ("auth_pass", "password", "stats_password", "contents")


class Comparison(NamedTuple):
    """One event beside the same event of the drills before."""

    vip: str
    event: str
    outage_ms: float
    drills: int
    before: drill_records.Measured
    high_ms: Optional[float]
    slower: bool

    @property
    def words(self) -> str:
        if self.slower:
            than = f"the {HIGH}th percentile of your last {self.drills} drills, {self.high_ms:g} ms"
            return f"{self.outage_ms:g} ms is slower than {than}."
        return f"{self.outage_ms:g} ms; before, {self.before.words}; the plan says at most {self.before.limit_ms:g} ms."


class History(NamedTuple):
    """What a drill adds to the history, and what the history says of it.

    :ivar file: the name under which the record is kept
    :ivar lines: sentences for the user: how each event compares, and which files are no records
    """

    record: Dict[str, Any]
    file: str
    comparisons: List[Dict[str, Any]]
    lines: List[str]


def history(report: Dict[str, Any], about: Dict[str, Any], kept: Sequence[Dict[str, Any]]) -> History:
    """Return the record of a drill, and how it compares.

    :param report: as `report.report` returns it
    :param about: ``{at, layout, ansible, interval_ms, plans, members}``: the time in seconds since 1970, the plans as
        `layout_plans` returns them, and what `member_info` returned on each member before and after, by name
    :param kept: the files in the folder of the history, each ``{path, text, wrong}``
    """
    known = drill_records.read(kept, float(about["at"]))
    found = [each for each in (_compare(row, known, float(about["interval_ms"])) for row in report["rows"]) if each]
    record = _record(report, about)
    return History(
        record=record,
        file=f"{record['at'].replace('-', '').replace(':', '')}-{about['layout']}-{next(iter(record['members']))}.json",
        comparisons=[
            {**each._asdict(), "before": {**each.before._asdict(), "words": each.before.words}, "words": each.words}
            for each in found
        ],
        lines=[*(f"{each.vip}, {each.event}: {each.words}" for each in found), *known.unread],
    )


def _record(report: Dict[str, Any], about: Dict[str, Any]) -> Dict[str, Any]:
    at = datetime.datetime.fromtimestamp(int(about["at"]), datetime.timezone.utc)
    record = {
        "format": drill_records.FORMAT,
        "at": at.strftime(drill_records.TIME),
        "layout": about["layout"],
        "inventory_sha256": digest(about["plans"]),
        "collection": VERSION,
        "ansible": about["ansible"],
        "members": {name: _member(*seen) for name, seen in about["members"].items()},
        "rows": report["rows"],
        "faults": report["faults"],
    }
    return sealed.sealed(record)


def _member(before: Dict[str, Any], after: Dict[str, Any]) -> Dict[str, Any]:
    """Return what a member ran, and in which state it was; nothing is known of one that could not be read."""
    return {
        "engine": before.get("engine", ""),
        "versions": before.get("versions", {}),
        "before": _state(before),
        "after": _state(after),
    }


def _state(seen: Dict[str, Any]) -> List[str]:
    """Return in which state the router is for each VIP, how many servers are up, and why it could not take over."""
    found = [
        f"{instance['state'] or 'unknown'} for {', '.join(instance['addresses'])}"
        for instance in seen.get("instances", [])
    ]
    servers = seen.get("servers", {})
    if servers.get("total"):
        found.append(f"{servers['up']} of {servers['total']} servers up")
    return found + seen.get("unable", [])


def digest(plans: List[Dict[str, Any]]) -> str:
    """Return the SHA-256 of what the inventory's variables come to, without passwords and forecast."""
    planned = [_without_secrets({key: plan[key] for key in ("vips", "members")}) for plan in plans]
    return hashlib.sha256(json.dumps(planned, sort_keys=True).encode()).hexdigest()


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(each) for key, each in value.items() if key not in SECRETS}
    return [_without_secrets(each) for each in value] if isinstance(value, (list, tuple)) else value


def _compare(row: Dict[str, Any], kept: drill_records.Kept, interval_ms: float) -> Optional[Comparison]:
    """Compare an event with its last drills.

    An outage is measured to one interval of the probe. A smaller difference says nothing.
    """
    subject = drill_records.Subject(
        row["vip"], row["event"], row["members"], row["limit_ms"], row["asks"], row.get("service", "")
    )
    before = drill_records.measured(kept, subject)
    if row["outage_ms"] is None or before is None:
        return None
    high = percentile(before.each_ms, HIGH) if len(before.each_ms) >= FEWEST else None
    slower = high is not None and row["outage_ms"] > high + interval_ms
    return Comparison(row["vip"], row["event"], row["outage_ms"], len(before.each_ms), before, high, slower)


def percentile(values: Sequence[float], rank: int) -> float:
    """Return the smallest of the values that is not exceeded by ``rank`` percent of them."""
    return sorted(values)[math.ceil(len(values) * rank / 100) - 1]
