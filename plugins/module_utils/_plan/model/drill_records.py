# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The records that drills have kept, and what they measured of one event on one VIP. Pure.

A measurement counts only for what it was made of: the same VIP and event, held by the same members with the same
engines, of which the forecast said the same, and asked in the same way as in the last such drill. One that is older
than `DAYS` does not count.
"""

from __future__ import annotations

import datetime
import itertools
import json
import statistics
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import shown
from ..._shared import events, sealed

FORMAT = 1
LAST = 20  # drills that count
DAYS = 90  # after which OnpremLbDrillOld asks for the next one
LARGEST = 1e12  # of a number of milliseconds, some 30 years
TIME = "%Y-%m-%dT%H:%M:%SZ"

Record = Dict[str, Any]
Row = Mapping[str, Any]


class Kept(NamedTuple):
    """The records of a folder, the oldest first, and a sentence for each file that is none.

    :ivar now: in seconds since 1970
    """

    records: Sequence[Record] = ()
    unread: Sequence[str] = ()
    now: float = 0


NONE = Kept()


class Subject(NamedTuple):
    """What a measurement is of.

    :ivar members: those that may hold the VIP, with their engines; '' where that is not known, or is a static pod
    :ivar limit_ms: the longest outage that the forecast has
    :ivar asks: how the probe asks; None: as in the last drill
    :ivar service: of a server that is lost
    """

    vip: str
    event: str
    members: Mapping[str, str]
    limit_ms: float
    asks: Optional[str] = None
    service: str = ""


class Measured(NamedTuple):
    """What the last drills measured, in milliseconds.

    :ivar each_ms: the median of each drill
    """

    median_ms: float
    worst_ms: float
    rounds: int
    each_ms: List[float]
    last: str  # the date
    limit_ms: float

    @property
    def broken(self) -> bool:
        return self.worst_ms > self.limit_ms

    @property
    def words(self) -> str:
        count = len(self.each_ms)
        when = f"{count} drills, the last on {self.last}" if count > 1 else f"1 drill on {self.last}"
        found = f"measured {self.median_ms:.0f} ms, at worst {self.worst_ms:.0f} ms ({when})"
        return f"{found}: THE BOUND WAS BROKEN" if self.broken else found


def read(files: Iterable[Mapping[str, Any]], now: float) -> Kept:
    """Return what a folder has.

    :param files: each ``{path, text, wrong}``, as the lookup `drill_history` returns them
    """
    records: List[Record] = []
    unread: List[str] = []
    for file in files:
        record, wrong = _parsed(file)
        if wrong:
            unread.append(f"{file['path']} is skipped: {wrong}.")
        else:
            records.append(record)
    return Kept(sorted(records, key=_time), unread, now)


def measured(kept: Kept, subject: Subject) -> Optional[Measured]:
    """Return what the last drills measured of a subject; None where none has."""
    found = [(record["at"], row) for record in kept.records for row in record["rows"] if _counts(record, row, subject)]
    fresh = [(at, row) for at, row in found if at >= _oldest(kept.now)]
    asks = fresh[-1][1].get("asks") if fresh and subject.asks is None else subject.asks
    last = [(at, row) for at, row in fresh if row.get("asks") == asks][-LAST:]
    if not last:
        return None
    took = [value for _at, row in last for value in _took(row)]
    return Measured(
        median_ms=round(statistics.median(took), 1),
        worst_ms=max(took),
        rounds=len(took),
        each_ms=[row["outage_ms"] for _at, row in last],
        last=last[-1][0].partition("T")[0],
        limit_ms=subject.limit_ms,
    )


def others(kept: Kept, vip: str, shown: bool) -> str:
    """Return a sentence where records have a VIP of which nothing is shown."""
    own = [[row for row in record["rows"] if row["vip"] == vip and not row.get("service")] for record in kept.records]
    count = sum(map(bool, own))
    if shown or not count:
        return ""
    drills = f"{count} drill{'s' if count > 1 else ''}"
    return f"{drills} of it not shown: over {DAYS} days old, or of other members, engines or settings"


def _oldest(now: float) -> str:
    oldest = datetime.datetime.fromtimestamp(now, datetime.timezone.utc) - datetime.timedelta(days=DAYS)
    return oldest.strftime(TIME)


def _counts(record: Record, row: Row, subject: Subject) -> bool:
    """Whether a row is of a subject. Before 1.1.0 the probe sent nothing, unless the user said what."""
    of = (row["vip"], row["event"], row.get("service", ""))
    if of != (subject.vip, subject.event, subject.service) or not _is_number(row["outage_ms"]):
        return False
    if "asks" not in row and row["event"] in events.ACCEPTING:
        return False
    known = {name: member.get("engine", "") for name, member in record.get("members", {}).items()}
    members = row.get("members", known)
    return all(members.values()) and members == dict(subject.members) and row.get("limit_ms") == subject.limit_ms


def _took(row: Row) -> List[float]:
    return list(row.get("took_ms") or row.get("outages_ms") or [row["outage_ms"]])


def _time(record: Record) -> str:
    return str(record["at"])


def _parsed(file: Mapping[str, Any]) -> Tuple[Record, str]:
    """Return the record that a file has, or what is wrong with it."""
    if file["wrong"]:
        return {}, file["wrong"]
    found, wrong = _json(file["text"])
    if wrong:
        return {}, wrong
    if not isinstance(found, dict) or "format" not in found:
        return {}, "it is not the record of a drill"
    if found["format"] != FORMAT:
        return {}, f"its format is {shown(found['format'])}, and this version knows {FORMAT}"
    try:
        found = sealed.unsealed(found)
    except ValueError as error:
        return {}, str(error)
    return (found, "") if _is_record(found) else ({}, "it is not the record of a drill")


def last_report(text: str, at: float) -> Dict[str, Any]:
    """Return the report of the last drill with ``at``, when it was written; or with ``wrong``, if it is none."""
    found, wrong = _json(text)
    rows, faults = (found.get("rows"), found.get("faults")) if isinstance(found, dict) else (None, None)
    if not (isinstance(rows, list) and isinstance(faults, list)) or not all(
        isinstance(row, dict) and "worst_ms" in row and _is_measured(row["worst_ms"]) for row in rows
    ):
        return {"at": at, "wrong": wrong or "it is not the report of a drill"}
    return {**found, "at": at}


def _json(text: str) -> Tuple[Any, str]:
    try:
        return json.loads(text), ""
    except (ValueError, RecursionError):
        return None, "it is not JSON"


def _is_record(found: Dict[str, Any]) -> bool:
    rows, members = found.get("rows"), found.get("members", {})
    named = isinstance(members, dict) and all(isinstance(member, dict) for member in members.values())
    return _is_time(found.get("at")) and named and isinstance(rows, list) and all(map(_is_row, rows))


def _is_time(value: Any) -> bool:
    try:
        return bool(datetime.datetime.strptime(value, TIME))
    except (TypeError, ValueError):
        return False


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not {"vip", "event", "outage_ms"} <= set(row):
        return False
    lists = [row.get(key) or [] for key in ("took_ms", "outages_ms")]
    if not isinstance(row.get("members", {}), dict) or not all(isinstance(took, list) for took in lists):
        return False
    return _is_measured(row["outage_ms"]) and all(map(_is_number, itertools.chain(*lists)))


def _is_measured(value: Any) -> bool:
    """Whether a round may have a value; null is of one that was not measured."""
    return value is None or _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST < value < LARGEST
