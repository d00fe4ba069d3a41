# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the report of a drill shows as a page, in words and figures. Pure; the templates of the role drill write it."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import report
from .figures import bars, lanes, latency, rounds, strip
from .figures.scales import exact

GOOD, BAD = "good", "bad"
OF_THE_EVENT = ("VIP", "event", "probe", "worst", "allowed", "failed rounds", "extra rounds")


class Event(NamedTuple):
    """One event on one VIP: its row in words, and the figures of its slowest round."""

    title: str
    verdict: str  # GOOD or BAD
    words: List[str]
    broken: List[str]
    rounds: List[List[str]]  # a table; nothing where there was one
    round: str
    bars: bars.Bars
    strip: Optional[strip.Strip]
    lanes: Optional[lanes.Lanes]
    latency: Optional[latency.Latency]


class Page(NamedTuple):
    title: str
    verdict: str
    words: List[str]
    head: List[Tuple[str, str]]
    tones: List[Tuple[str, str]]  # of the legend, each with its holder
    table: List[List[str]]
    events: List[Event]
    notes: List[str]


def page(results: Sequence[Dict[str, Any]], found: Dict[str, Any], history: Dict[str, Any]) -> Page:
    """Return the page of a drill.

    :param results: the rounds that the role drill ran
    :param found: the report on them, as `report.report` returns it
    :param history: as `history.history` returns it
    """
    tone_of = rounds.tones(results)
    compared = {(each["vip"], each["event"]): each for each in history["comparisons"]}
    events = []
    for row in found["rows"]:
        own = [item for item in results if (item["vip"], item["event"]) == (row["vip"], row["event"])]
        events.append(_event(row, own, compared.get((row["vip"], row["event"])), found["faults"], tone_of))
    vips = ", ".join(dict.fromkeys(row["vip"] for row in found["rows"]))
    return Page(
        title=f"Drill of {vips}",
        verdict=BAD if found["faults"] else GOOD,
        words=_verdict(found, history),
        head=_head(history["record"], results),
        tones=[(tone, name) for name, tone in tone_of.items()],
        table=_table(report.cells(found["rows"])),
        events=events,
        notes=history["lines"],
    )


def _verdict(found: Dict[str, Any], history: Dict[str, Any]) -> List[str]:
    rows = found["rows"]
    failed = [row for row in rows if _failed(row, found["faults"])]
    measured = [row for row in rows if row["worst_ms"] is not None]
    slower = sum(each["slower"] for each in history["comparisons"])
    judged = f"{len(failed)} of {_events(len(rows))} failed" if failed else f"{_events(len(rows))} went as planned"
    words = [f"{judged}."]
    if measured:
        worst = max(measured, key=lambda row: float(row["worst_ms"]))
        allowed = f"the plan allows {exact(worst['limit_ms'])}."
        words.append(f"The longest outage was {exact(worst['worst_ms'])}, at {_name(worst['event'])}; {allowed}")
    unknown = len(rows) - len(measured)
    words += [f"For {_events(unknown)} the outage was not measured."] if unknown else []
    return [*words, f"{_events(slower)} took longer than before."] if slower else words


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _name(event: str) -> str:
    return event.replace("_", " ")


def _failed(row: Dict[str, Any], faults: Sequence[str]) -> bool:
    return any(fault.startswith(f"{row['vip']}, {row['event']}: ") for fault in faults)


def _head(record: Dict[str, Any], results: Sequence[Dict[str, Any]]) -> List[Tuple[str, str]]:
    """Return what was drilled when, with which versions: the evidence of an audit."""
    date, _t, clock = record["at"].rstrip("Z").partition("T")
    intervals = sorted({float(item["interval_ms"]) for item in results})
    return [
        ("Date", f"{date} {clock} UTC"),
        ("Layout", record["layout"]),
        ("Events", ", ".join(dict.fromkeys(_name(row["event"]) for row in record["rows"]))),
        ("Rounds", _rounds(record["rows"])),
        ("Probe", f"a new connection every {' or '.join(f'{each:g}' for each in intervals)} ms"),
        *((name, _member(member)) for name, member in record["members"].items()),
        ("Software", f"onprem.lb {record['collection']}, ansible-core {record['ansible']}"),
        ("Inventory, SHA-256", record["inventory_sha256"]),
    ]


def _rounds(rows: Sequence[Dict[str, Any]]) -> str:
    """Say how often each event happened on a VIP."""
    if {row["rounds"] for row in rows} == {1}:
        return "one of each event"
    counted = ", ".join(f"{_name(row['event'])} {row['rounds']}" for row in rows)
    return f"{sum(row['rounds'] for row in rows)}: {counted}"


def _member(member: Dict[str, Any]) -> str:
    """Say what a member ran, and in which state it was before and after the drill."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(member["versions"].items()))
    before, after = member["before"], member["after"]
    times = [("before and after", before)] if before == after else [("before", before), ("after", after)]
    states = [f"{when}: {', '.join(state) or 'not read'}" for when, state in times]
    return "; ".join([versions or "versions not known", *states])


def _table(lines: List[List[str]]) -> List[List[str]]:
    """Return the lines of a table without the columns that say nothing in any line."""
    wanted = [at for at, column in enumerate(zip(*lines)) if not set(column[1:]) <= {"", "0"}]
    return [[line[at] for at in wanted] for line in lines]


def _event(
    row: Dict[str, Any],
    results: Sequence[Dict[str, Any]],
    compared: Optional[Dict[str, Any]],
    faults: Sequence[str],
    tone_of: Dict[str, str],
) -> Event:
    slowest = max(results, key=lambda item: float(item["seen"]["takeover"]["outage_ms"]))
    drawn = rounds.read(slowest)
    start = f"{row['vip']}, {row['event']}: "
    own = [fault[len(start) :] for fault in faults if fault.startswith(start)]
    return Event(
        title=f"{_name(row['event'])}, {row['vip']}",
        verdict=BAD if own else GOOD,
        words=[*_words(row, results), *_before(compared)],
        broken=own or row["broken"],
        rounds=_each_round(results),
        round=_which(results, slowest),
        bars=bars.bars(row, compared),
        strip=strip.strip(drawn, tone_of) if drawn.answers else None,
        lanes=lanes.lanes(drawn, tone_of) if drawn.holdings else None,
        latency=latency.latency(drawn, tone_of) if drawn.answers else None,
    )


def _each_round(results: Sequence[Dict[str, Any]]) -> List[List[str]]:
    """Return a table with a line for each round, without what is the same for the whole event."""
    if len(results) == 1:
        return []
    head, *lines = report.cells(report.each_round(list(results)))
    wanted = [at for at, name in enumerate(head) if name not in OF_THE_EVENT]
    numbered = [[str(number), *(line[at] for at in wanted)] for number, line in enumerate(lines, 1)]
    return _table([["round", *(head[at] for at in wanted)], *numbered])


def _before(compared: Optional[Dict[str, Any]]) -> List[str]:
    """Say what the drills before this one measured."""
    if not compared:
        return []
    return [compared["words"] if compared["slower"] else f"Before: {compared['before']['words']}."]


def _which(results: Sequence[Dict[str, Any]], slowest: Dict[str, Any]) -> str:
    if len(results) == 1:
        return "one round"
    return f"round {list(results).index(slowest) + 1} of {len(results)}, the slowest"


def _words(row: Dict[str, Any], results: Sequence[Dict[str, Any]]) -> List[str]:
    """Say what happened: who held the VIP, who took over, and what it cost."""
    before, after = (" or ".join(row[key]) or "an unknown member" for key in ("before", "after"))
    moved = f"{before} kept the VIP" if before == after else f"{after} took over from {before}"
    gone = f"The VIP was gone for {exact(row['outage_ms'])}" if row["outage_ms"] else "The VIP was served throughout"
    gone = "The VIP may have been gone: that was not measured" if row["outage_ms"] is None else gone
    if row["new_failed"]:
        moved = f"{', '.join(row['before'])} announced the VIP before, and by the plan {', '.join(row['after'])} after"
        lasts = "was not measured" if row["outage_ms"] is None else f"went on for {exact(row['outage_ms'])}"
        gone = f"Of new connections {row['new_failed']} failed, which {lasts}; of lasting ones {row['lasting_share']}"
        gone += " ended"
    words = [
        f"{moved}. {gone}; the plan allows {exact(row['limit_ms'])}. Probe: {row['asks']}.",
        f"Of {row['tried']} connections {row['failed'] or 'none'} failed.",
    ]
    lasting = [item["seen"]["lasting"] for item in results if item["seen"].get("lasting")]
    held, lost = (sum(each[key] for each in lasting) for key in ("held", "lost"))
    words += [f"Connections: {row['clients']}."] if row["clients"] else []
    return [*words, f"Of {held} lasting connections {lost or 'none'} ended."] if held else words
