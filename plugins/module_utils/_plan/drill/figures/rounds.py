# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A round as the figures show it: each answer, who held the VIP when, and when the event happened."""

from __future__ import annotations

import datetime
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ...._shared import series

START_LIMIT_MS = 5000.0  # the event comes sooner after the probe's start, or the clocks of the two hosts differ

# The tones of what a mark stands for, beside those of the holders.
SILENT, BOTH, UNKNOWN, SKIPPED = "silent", "both", "unknown", "skipped"
WHO = ("who-1", "who-2", "who-3", "who-4", "who-5", "who-6")


class Holding(NamedTuple):
    """For how long some members held the VIP together."""

    begin_ms: float
    end_ms: float
    holders: List[str]


class Round(NamedTuple):
    """What the figures draw.

    :ivar begin_ms: when the event happened, and ``end_ms`` when it was reverted; none if that is not known. Both are
        the moment of a return
    """

    member: str
    event: str
    interval_ms: float
    length_ms: float
    answers: List[series.Answer]
    holdings: List[Holding]
    begin_ms: Optional[float]
    end_ms: Optional[float]


def read(result: Dict[str, Any]) -> Round:
    """Read a result of the role drill."""
    seen, interval_ms = result["seen"], float(result["interval_ms"])
    length_ms = seen.get("probed_ms", 0.0)
    answers = [each for each in series.decode(seen.get("series", ""), interval_ms) if each.at_ms < length_ms]
    holdings = list(_holdings(seen["timeline"], length_ms))
    begin_ms = _begin(result, holdings)
    lasts_ms = 0.0 if result.get("waits") else _milliseconds(result, "revert_after")
    return Round(
        member=result["member"],
        event=result["event"].replace("_", " "),
        interval_ms=interval_ms,
        length_ms=length_ms,
        answers=answers,
        holdings=holdings,
        begin_ms=begin_ms,
        end_ms=None if begin_ms is None else min(begin_ms + lasts_ms, length_ms),
    )


def _holdings(timeline: Sequence[Dict[str, Any]], end_ms: float) -> Iterator[Holding]:
    ends = [step["at_ms"] for step in timeline[1:]] + [end_ms]
    for step, end in zip(timeline, ends):
        if step["at_ms"] < end:
            yield Holding(step["at_ms"], end, step["holders"])


def _begin(result: Dict[str, Any], holdings: Sequence[Holding]) -> Optional[float]:
    """Return when the event happened.

    It is known by the member's clock, and the probe's start by the probe's. Where these differ visibly, because the
    event came after what it caused, the first failure or move stands for it.
    """
    told, started_at = result.get("injected_at"), result["seen"].get("started_at")
    moves = [each.begin_ms for each in holdings[1:2]]
    first = min([*moves, *(outage["start_ms"] for outage in result["seen"].get("outages", []))], default=None)
    if told and started_at is not None:
        since = 1000.0 * (datetime.datetime.fromisoformat(told).timestamp() - float(started_at))
        latest = START_LIMIT_MS
        if result.get("waits"):
            latest += _milliseconds(result, "revert_after") - _milliseconds(result, "waits")
        if 0 <= since <= (latest if first is None else first + result["seen"].get("longest_stall_ms", 0) + 50):
            return round(since, 1)
    return first


def _milliseconds(result: Dict[str, Any], key: str) -> float:
    return 1000.0 * float(result.get(key, 0.0))


def tones(results: Sequence[Dict[str, Any]]) -> Dict[str, str]:
    """Return the tone of each holder, in the order of the members; those after the sixth have none of their own."""
    held = {name for result in results for step in result["seen"]["timeline"] for name in step["holders"]}
    order = [member["name"] for result in results for member in result.get("members", [])]
    names = [name for name in dict.fromkeys([*order, *sorted(held)]) if name in held]
    return {name: WHO[at] if at < len(WHO) else UNKNOWN for at, name in enumerate(names)}


def told(drawn: Round, tone_of: Dict[str, str]) -> Iterator[Tuple[series.Answer, str, str]]:
    """Yield each answer with its tone, and who gave it in words."""
    holdings = iter(drawn.holdings)
    now = next(holdings, None)
    for answer in drawn.answers:
        while now and now.end_ms <= answer.at_ms:
            now = next(holdings, None)
        yield (answer, *_tone(answer, now.holders if now else [], tone_of))


def _tone(answer: series.Answer, holders: Sequence[str], tone_of: Dict[str, str]) -> Tuple[str, str]:
    if answer.outcome == series.SKIPPED:
        return SKIPPED, "not probed"
    if answer.outcome != series.OK:
        return SILENT, answer.outcome
    if len(holders) == 1:
        return tone_of[holders[0]], f"answered by {holders[0]}"
    return (BOTH, f"answered, held by {' and '.join(holders)}") if holders else (UNKNOWN, "answered, holder not known")
