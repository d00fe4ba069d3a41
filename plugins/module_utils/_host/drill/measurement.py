# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a client sees an address fail over: connections and holders, asked on one grid, and what they add up
to.

Pure: a ``Transcript`` (what was tried, what answered, who claimed the address) becomes a report. It is
worked out afterwards, so that a holder's last sign of life counts as its end, not the moment it was missed.
Times are milliseconds from the start of the transcript; ``prober`` makes it.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

# A member is gone after this many unanswered questions in a row: fewer when somebody else answered them,
# because then the question cannot have been lost; more when nobody did, because then it can.
MISSED_WITH_OTHER = 4
MISSED_ALONE = 10


class Attempt(NamedTuple):
    """One connection. ``outcome``: ok, slow (answered after its time-out), timeout, refused, reset, closed,
    or an errno."""

    start_ms: float
    end_ms: float
    outcome: str


@dataclass
class Transcript:
    attempts: List[Attempt] = field(default_factory=list)
    asks: List[float] = field(default_factory=list)
    sightings: List[Tuple[float, str]] = field(default_factory=list)
    length_ms: float = 0.0
    skipped: int = 0
    longest_stall_ms: float = 0.0
    settled: bool = False


Stretch = Tuple[float, float]


class Outage(NamedTuple):
    """From the start of the first failed attempt to the start of the next good one: as long as a client
    that tries at once would have had to go on trying. At most one interval shorter than the truth.
    ``ended``: false when probing ended first."""

    start_ms: float
    length_ms: float
    failed: int
    ended: bool


class Transition(NamedTuple):
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


def presences(transcript: Transcript, names: Mapping[str, str]) -> Dict[str, List[Stretch]]:
    """When each member held the address: name -> [(from, to), ...]. An unknown MAC goes by its own text."""
    seen: Dict[str, List[float]] = {}
    heard = sorted(sighting for sighting in transcript.sightings if sighting[0] <= transcript.length_ms)
    for at, mac in heard:
        seen.setdefault(names.get(mac, mac), []).append(at)
    everyone = [at for at, _mac in heard]
    return {name: _stretches(times, everyone, transcript) for name, times in seen.items()}


def _stretches(times: List[float], everyone: List[float], transcript: Transcript) -> List[Stretch]:
    """``times`` of one member, cut where it was missing."""
    asks, end = transcript.asks, transcript.length_ms
    begin = 0.0 if bisect.bisect_left(asks, times[0]) <= MISSED_WITH_OTHER else times[0]
    found = []
    for this, following in zip(times, times[1:] + [end]):
        # The question that `following` answers was not missed.
        missed = bisect.bisect_left(asks, following) - bisect.bisect_right(asks, this) - (following != end)
        others = bisect.bisect_left(everyone, following) - bisect.bisect_right(everyone, this)
        if missed >= (MISSED_WITH_OTHER if others else MISSED_ALONE):
            found.append((begin, _last_held(begin, this, times, everyone, transcript)))
            begin = following
    if begin < end:
        found.append((begin, end))
    return found


def _last_held(begin: float, last: float, times: List[float], everyone: List[float], transcript: Transcript) -> float:
    """A member that answered for the last time held the address until the next question, which it did not
    answer, or until somebody else claimed it, whatever came first. If somebody else had answered the same
    question before, nobody knows that the member held it for any longer: two holders are not counted for
    longer than they were seen, but for one that was seen only once."""
    asks, end = transcript.asks, transcript.length_ms
    ask = bisect.bisect_right(asks, last)
    asked = asks[ask - 1] if ask else 0.0
    if begin < last and _count(everyone, asked, last) > _count(times, asked, last):
        return last
    other = bisect.bisect_right(everyone, last)
    return min(
        asks[ask] if ask < len(asks) else end,
        everyone[other] if other < len(everyone) else end,
    )


def _count(times: List[float], begin: float, end: float) -> int:
    """How many are within a stretch, its end left out."""
    return bisect.bisect_left(times, end) - bisect.bisect_left(times, begin)


def timeline(transcript: Transcript, names: Mapping[str, str]) -> List[Transition]:
    """Every change of who holds the address, starting with the state at 0."""
    # At one instant, ends come before beginnings: a hand-over is not a moment of two holders.
    changes: List[Tuple[float, int, str]] = []
    for name, stretches in presences(transcript, names).items():
        for begin, end in stretches:
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


def held_by(count: Callable[[int], bool], line: Sequence[Transition], end_ms: float) -> float:
    """For how long the number of holders was such."""
    ends = [step.at_ms for step in line[1:]] + [end_ms]
    return sum(end - step.at_ms for step, end in zip(line, ends) if count(len(step.holders)))


def sole(holders: FrozenSet[str]) -> Optional[str]:
    return next(iter(holders)) if len(holders) == 1 else None


def taken_over_at(attempts: Sequence[Attempt], line: Sequence[Transition]) -> Optional[float]:
    """The start of the first good attempt that a new holder served alone: what comes later is the
    comeback."""
    before = next((sole(step.holders) for step in line if sole(step.holders)), None)
    news = (step.at_ms for step in line if sole(step.holders) not in (None, before))
    moved = next(news, None)
    if moved is None:
        return None
    return min((a.start_ms for a in attempts if a.outcome == "ok" and a.start_ms >= moved), default=None)


def silence(attempts: Sequence[Attempt], begin_ms: float, end_ms: float) -> float:
    """The longest time in which no good attempt was answered.

    An outage can hide from ``outages``: a SYN may wait in a queue for the address to be resolved again, at
    the client or at a former holder that forwards, and be answered when it is. The attempt then succeeds,
    late.
    """
    answers = sorted(a.end_ms for a in attempts if a.outcome == "ok" and begin_ms <= a.end_ms <= end_ms)
    edges = [begin_ms] + answers + [end_ms]
    return max(later - earlier for earlier, later in zip(edges, edges[1:]))


def phase(attempts: Sequence[Attempt], begin_ms: float, end_ms: float) -> Dict[str, Any]:
    found = outages(attempts, end_ms)
    return {
        "outage_ms": _round(max((o.length_ms for o in found), default=0.0)),
        "silence_ms": _round(silence(attempts, begin_ms, end_ms)),
        "total_ms": _round(sum(o.length_ms for o in found)),
        "failed": sum(o.failed for o in found),
        "tried": len(attempts),
    }


def report(transcript: Transcript, names: Mapping[str, str], holders_known: bool) -> Dict[str, Any]:
    """The whole answer of the probe, from what it saw."""
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
        # Not `failed`, nor `skipped` below: for Ansible these would say that the task has failed, or was skipped.
        "failed_attempts": sum(failures.values()),
        "slow": failures.get("slow", 0),
        "failures": failures,
        "outages": [_rounded(o._asdict()) for o in outages(attempts, end)],
        "takeover": phase([a for a in attempts if split is None or a.start_ms < split], 0.0, middle),
        "comeback": phase([a for a in attempts if split is not None and a.start_ms >= split], middle, end),
        "probed_ms": _round(end),
        "left_out": transcript.skipped,
        "longest_stall_ms": _round(transcript.longest_stall_ms),
        "settled": transcript.settled,
        "holders_known": holders_known,
    }
    answer.update(_holders(line, end))
    return answer


def _holders(line: Sequence[Transition], end_ms: float) -> Dict[str, Any]:
    return {
        "timeline": [{"at_ms": _round(s.at_ms), "holders": sorted(s.holders)} for s in line],
        "holder_before": sole(line[0].holders) if line else None,
        "holder_after": sole(line[-1].holders) if line else None,
        "most_holders": max((len(s.holders) for s in line), default=0),
        "two_holders_ms": _round(held_by(lambda n: n > 1, line, end_ms)),
        "no_holder_ms": _round(held_by(lambda n: n == 0, line, end_ms)),
    }


def _round(value: float) -> float:
    return round(value, 1)


def _rounded(values: Dict[str, Any]) -> Dict[str, Any]:
    return {key: _round(value) if isinstance(value, float) else value for key, value in values.items()}
