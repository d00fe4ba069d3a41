# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates how a client saw an address fail over. Pure: a ``Transcript``, which ``prober`` makes, becomes a report.

The evaluation comes afterwards, so that a holder's time ends with its last reply and not when the absence is noticed.
Times are milliseconds from the start of the transcript.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

# A member is gone after this many unanswered probes in a row. Fewer suffice when another host answered them, because
# then the probe was not lost.
MISSED_WITH_OTHER = 4
MISSED_ALONE = 10


class Attempt(NamedTuple):
    """One connection."""

    start_ms: float
    end_ms: float
    outcome: str  # ok, slow (answered after its timeout), or how it failed


@dataclass
class Transcript:
    """Each connection, when the link was probed, and which MAC claimed the address when."""

    attempts: List[Attempt] = field(default_factory=list)
    probes: List[float] = field(default_factory=list)
    sightings: List[Tuple[float, str]] = field(default_factory=list)
    length_ms: float = 0.0
    skipped: int = 0
    longest_stall_ms: float = 0.0
    settled: bool = False


Interval = Tuple[float, float]


class Outage(NamedTuple):
    """From the start of the first failed attempt to the start of the next good one: how long a client would have to
    retry. At most one interval shorter than the truth, and the longest stall of the probing host."""

    start_ms: float
    length_ms: float
    failed: int
    ended: bool  # false when the probe ended first


class Transition(NamedTuple):
    """The holders of the address from a time on."""

    at_ms: float
    holders: FrozenSet[str]


def outages(attempts: Sequence[Attempt], end_ms: float) -> List[Outage]:
    found: List[Outage] = []
    first: Optional[float] = None
    failed = 0
    for attempt in sorted(attempts):
        if attempt.outcome != "ok":
            first = attempt.start_ms if first is None else first
            failed += 1
        elif first is not None:
            found.append(Outage(first, attempt.start_ms - first, failed, True))
            first, failed = None, 0
    if first is not None:
        found.append(Outage(first, max(0.0, end_ms - first), failed, False))
    return found


def holdings(transcript: Transcript, names: Mapping[str, str]) -> Dict[str, List[Interval]]:
    """Return when each member held the address: name -> [(from, to), ...]. An unknown MAC is its own name."""
    seen: Dict[str, List[float]] = {}
    replies = sorted(sighting for sighting in transcript.sightings if sighting[0] <= transcript.length_ms)
    for at, mac in replies:
        seen.setdefault(names.get(mac, mac), []).append(at)
    sightings = [at for at, _mac in replies]
    return {name: _intervals(times, sightings, transcript) for name, times in seen.items()}


def _intervals(times: List[float], sightings: List[float], transcript: Transcript) -> List[Interval]:
    """Return the intervals in which a member held the address, from the times of its replies."""
    probes, end = transcript.probes, transcript.length_ms
    begin = 0.0 if bisect.bisect_left(probes, times[0]) <= MISSED_WITH_OTHER else times[0]
    found = []
    for this, following in zip(times, times[1:] + [end]):
        # The probe that `following` answers was not missed.
        missed = bisect.bisect_left(probes, following) - bisect.bisect_right(probes, this) - (following != end)
        others = bisect.bisect_left(sightings, following) - bisect.bisect_right(sightings, this)
        if missed >= (MISSED_WITH_OTHER if others else MISSED_ALONE):
            found.append((begin, _last_held(begin, this, times, sightings, transcript)))
            begin = following
    if begin < end:
        found.append((begin, end))
    return found


def _last_held(begin: float, last: float, times: List[float], sightings: List[float], transcript: Transcript) -> float:
    """Return until when a member held the address after its last reply.

    That is the next probe, which it did not answer, or another host's claim, if that came first. It is the reply itself
    if another host had already answered the same probe: two holders are not counted for longer than they were seen. A
    member that was seen only once is the exception.
    """
    probes, end = transcript.probes, transcript.length_ms
    following = bisect.bisect_right(probes, last)
    probed = probes[following - 1] if following else 0.0
    if begin < last and _count(sightings, probed, last) > _count(times, probed, last):
        return last
    other = bisect.bisect_right(sightings, last)
    return min(
        probes[following] if following < len(probes) else end,
        sightings[other] if other < len(sightings) else end,
    )


def _count(times: List[float], begin: float, end: float) -> int:
    """Return how many of the times lie between ``begin`` and ``end``, ``end`` excluded."""
    return bisect.bisect_left(times, end) - bisect.bisect_left(times, begin)


def timeline(transcript: Transcript, names: Mapping[str, str]) -> List[Transition]:
    """Return every change of the holders, starting with those at 0."""
    # At one instant, ends come before beginnings: a handover is not a moment of two holders.
    changes: List[Tuple[float, int, str]] = []
    for name, intervals in holdings(transcript, names).items():
        for begin, end in intervals:
            changes.append((begin, 1, name))
            if end < transcript.length_ms:
                changes.append((end, 0, name))
    found = [Transition(0.0, frozenset())]
    for at, begins, name in sorted(changes):
        holders = found[-1].holders | {name} if begins else found[-1].holders - {name}
        if found[-1].at_ms == at:
            found.pop()
        if not found or found[-1].holders != holders:
            found.append(Transition(at, holders))
    return found


def duration_of(count: Callable[[int], bool], line: Sequence[Transition], end_ms: float) -> float:
    """Return for how long the number of holders satisfied a condition."""
    ends = [step.at_ms for step in line[1:]] + [end_ms]
    return sum(end - step.at_ms for step, end in zip(line, ends) if count(len(step.holders)))


def sole_holder(holders: FrozenSet[str]) -> Optional[str]:
    return next(iter(holders)) if len(holders) == 1 else None


def taken_over_at(attempts: Sequence[Attempt], line: Sequence[Transition]) -> Optional[float]:
    """Return when the first good attempt began that a new holder served alone: what comes later is the failback."""
    before = next((sole_holder(step.holders) for step in line if sole_holder(step.holders)), None)
    news = (step.at_ms for step in line if sole_holder(step.holders) not in (None, before))
    moved = next(news, None)
    if moved is None:
        return None
    return min((a.start_ms for a in attempts if a.outcome == "ok" and a.start_ms >= moved), default=None)


def response_gap(attempts: Sequence[Attempt], begin_ms: float, end_ms: float) -> float:
    """Return the longest time in which no good attempt was answered.

    It shows an outage that ``outages`` cannot see: a SYN may wait until the address is resolved again, at the client or
    at a former holder that forwards it, and then be answered. The attempt succeeds late.
    """
    answers = sorted(a.end_ms for a in attempts if a.outcome == "ok" and begin_ms <= a.end_ms <= end_ms)
    edges = [begin_ms] + answers + [end_ms]
    return max(later - earlier for earlier, later in zip(edges, edges[1:]))


def phase(attempts: Sequence[Attempt], begin_ms: float, end_ms: float) -> Dict[str, Any]:
    found = outages(attempts, end_ms)
    return {
        "outage_ms": _round(max((o.length_ms for o in found), default=0.0)),
        "response_gap_ms": _round(response_gap(attempts, begin_ms, end_ms)),
        "total_ms": _round(sum(o.length_ms for o in found)),
        "failed": sum(o.failed for o in found),
        "tried": len(attempts),
    }


def impaired(attempts: Sequence[Attempt]) -> Dict[str, Any]:
    """Return what clients saw of a failure that others meanwhile did not see, as of one server of several.

    ``{late, failed, open, window_ms, attempts, worst_ms, usual_ms}``: how many were answered late, or not, and how many
    more were not that may have been open when it happened; from the first of all these to the last, and how many
    attempts began meanwhile; the longest and the usual time until an answer.
    """
    found = sorted(attempts)
    late = [each for each in found if each.outcome == "slow"]
    failed = [each.start_ms for each in found if each.outcome not in ("ok", "slow")]
    took = sorted(each.end_ms - each.start_ms for each in found if each.outcome == "ok") or [0.0]
    starts = sorted([*(each.start_ms for each in late), *failed]) or [-1.0]  # before the first one
    opened = [start for start in failed if start <= starts[0] + took[-1]]
    return {
        "late": len(late),
        "failed": len(failed) - len(opened),
        "open": len(opened),
        "window_ms": _round(starts[-1] - starts[0]),
        "attempts": sum(starts[0] <= each.start_ms <= starts[-1] for each in found),
        "worst_ms": _round(max((each.end_ms - each.start_ms for each in late), default=took[-1])),
        "usual_ms": _round(took[len(took) // 2]),
    }


def report(transcript: Transcript, names: Mapping[str, str], holders_known: bool) -> Dict[str, Any]:
    """Return the whole result of a probe."""
    attempts, end = sorted(transcript.attempts), transcript.length_ms
    line = timeline(transcript, names) if holders_known else []
    split = taken_over_at(attempts, line)
    middle = end if split is None else split
    failures: Dict[str, int] = {}
    for attempt in attempts:
        if attempt.outcome != "ok":
            failures[attempt.outcome] = failures.get(attempt.outcome, 0) + 1
    answer = {
        "tried": len(attempts),
        # Ansible would take `failed` or `skipped` for the state of the task.
        "failed_attempts": sum(failures.values()),
        "slow": failures.get("slow", 0),
        "failures": failures,
        "outages": [_rounded(o._asdict()) for o in outages(attempts, end)],
        "takeover": phase([a for a in attempts if split is None or a.start_ms < split], 0.0, middle),
        "failback": phase([a for a in attempts if split is not None and a.start_ms >= split], middle, end),
        "impaired": impaired(attempts),
        "probed_ms": _round(end),
        "skipped_samples": transcript.skipped,
        "longest_stall_ms": _round(transcript.longest_stall_ms),
        "settled": transcript.settled,
        "holders_known": holders_known,
    }
    answer.update(_holders(line, end))
    return answer


def _holders(line: Sequence[Transition], end_ms: float) -> Dict[str, Any]:
    return {
        "timeline": [{"at_ms": _round(s.at_ms), "holders": sorted(s.holders)} for s in line],
        "holder_before": sole_holder(line[0].holders) if line else None,
        "holder_after": sole_holder(line[-1].holders) if line else None,
        "most_holders": max((len(s.holders) for s in line), default=0),
        "two_holders_ms": _round(duration_of(lambda n: n > 1, line, end_ms)),
        "no_holder_ms": _round(duration_of(lambda n: n == 0, line, end_ms)),
    }


def _round(value: float) -> float:
    return round(value, 1)


def _rounded(values: Dict[str, Any]) -> Dict[str, Any]:
    return {key: _round(value) if isinstance(value, float) else value for key, value in values.items()}
