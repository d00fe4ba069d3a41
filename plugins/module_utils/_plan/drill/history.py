# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The record that is kept of each drill, and how a drill compares with those before. Pure; runs on the controller."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..._agent import VERSION

FORMAT = 1
LAST = 20  # drills that an event is compared with
FEWEST = 5  # of which there must be so many: the percentiles of fewer say nothing
HIGH = 95
SECRETS = ("auth_pass", "password", "stats_password")

Record = Dict[str, Any]


class Comparison(NamedTuple):
    """One event beside the same event of the drills before."""

    vip: str
    event: str
    outage_ms: float
    drills: int
    median_ms: float
    high_ms: float
    slower: bool

    @property
    def words(self) -> str:
        than = f"the {HIGH}th percentile of your last {self.drills} drills, {self.high_ms:g} ms"
        return f"{self.outage_ms:g} ms is slower than {than}." if self.slower else f"{self.outage_ms:g} ms; {than}."


class History(NamedTuple):
    """What a drill adds to the history, and what the history says of it.

    :ivar file: the name under which the record is kept
    :ivar lines: sentences for the user: what was slower than before, and which files are no records
    """

    record: Record
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
    records, unread = _read(kept)
    found = [each for each in (_compare(row, records, float(about["interval_ms"])) for row in report["rows"]) if each]
    slower = [f"{each.vip}, {each.event}: {each.words}" for each in found if each.slower]
    record = _record(report, about)
    return History(
        record=record,
        file=f"{record['at'].replace('-', '').replace(':', '')}-{about['layout']}-{next(iter(record['members']))}.json",
        comparisons=[{**each._asdict(), "words": each.words} for each in found],
        lines=[*slower, *unread],
    )


def _record(report: Dict[str, Any], about: Dict[str, Any]) -> Record:
    at = datetime.datetime.fromtimestamp(int(about["at"]), datetime.timezone.utc)
    return {
        "format": FORMAT,
        "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "layout": about["layout"],
        "inventory_sha256": digest(about["plans"]),
        "collection": VERSION,
        "ansible": about["ansible"],
        "members": {name: _member(*seen) for name, seen in about["members"].items()},
        "rows": report["rows"],
        "faults": report["faults"],
    }


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


def _read(kept: Sequence[Dict[str, Any]]) -> Tuple[List[Record], List[str]]:
    """Return the records, the oldest first, and a sentence for each file that is none."""
    records: List[Record] = []
    unread: List[str] = []
    for file in kept:
        record, wrong = _parsed(file)
        if wrong:
            unread.append(f"{file['path']} is passed over: {wrong}.")
        else:
            records.append(record)
    return sorted(records, key=_time), unread


def _time(record: Record) -> str:
    return str(record["at"])


def _parsed(file: Dict[str, Any]) -> Tuple[Record, str]:
    """Return the record that a file has, or what is wrong with it."""
    if file["wrong"]:
        return {}, file["wrong"]
    try:
        found = json.loads(file["text"])
    except (ValueError, RecursionError):
        return {}, "it is no JSON"
    if not isinstance(found, dict) or "format" not in found:
        return {}, "it is no record of a drill"
    if found["format"] != FORMAT:
        return {}, f"its format is {found['format']!r}, and this version knows {FORMAT}"
    return (found, "") if _is_record(found) else ({}, "it is no record of a drill")


def _is_record(found: Dict[str, Any]) -> bool:
    rows = found.get("rows")
    return isinstance(found.get("at"), str) and isinstance(rows, list) and all(map(_is_row, rows))


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and {"vip", "event"} <= set(row)
        and isinstance(row.get("outage_ms"), (int, float))
        and math.isfinite(row["outage_ms"])
    )


def _compare(row: Dict[str, Any], records: List[Record], interval_ms: float) -> Optional[Comparison]:
    """Compare an event with its last drills; there must be enough of them.

    An outage is measured to one interval of the probe. A smaller difference says nothing.
    """
    before = list(_outages(row, records))[-LAST:]
    if len(before) < FEWEST:
        return None
    high = percentile(before, HIGH)
    return Comparison(
        row["vip"],
        row["event"],
        row["outage_ms"],
        len(before),
        percentile(before, 50),
        high,
        row["outage_ms"] > high + interval_ms,
    )


def _outages(row: Dict[str, Any], records: List[Record]) -> Iterator[float]:
    for record in records:
        for past in record["rows"]:
            if (past["vip"], past["event"]) == (row["vip"], row["event"]):
                yield past["outage_ms"]


def percentile(values: Sequence[float], rank: int) -> float:
    """Return the smallest of the values that is not exceeded by ``rank`` percent of them."""
    return sorted(values)[math.ceil(len(values) * rank / 100) - 1]
