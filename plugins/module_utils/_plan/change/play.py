# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plays the way from the settings that run to those that are planned, in every order that a run may take.

`moves` says what may happen at each moment. All of it is played, the plays with the fewest steps and faults first, so
that the counterexample that is returned is the shortest. `Seen` leaves out what would only repeat a play.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from typing import AbstractSet, Dict, FrozenSet, Hashable, Iterator, List, Tuple

from ..._agent.vrrp.core import machine
from ..forecast import simulator
from . import moves
from .moves import RELOAD, START, STOP, Moment, Numbered, Step, Way

__all__ = ["RELOAD", "START", "STOP", "Step", "Way", "counterexample"]
MILLISECOND = 1000
# For how long two members may have a VIP in a handover: the agent that resigns serves until its successor is announced.
HANDOVER = machine.LINGER_AFTER_SUCCESSOR + MILLISECOND


class Seen:
    """The moments from which a play has gone on: those at which a move was made, or those at which time has passed.

    Two moments are alike if the routers are in the same states at the same distance from their timers, the same
    Advertisements are on the link, and the same steps are left. What may follow after more faults may also follow after
    fewer, and is judged no milder there: it need not be played twice.
    """

    def __init__(self, way: Way, every: Numbered) -> None:
        self._way, self._every = way, every
        self._faults: Dict[Hashable, List[Tuple[int, int, FrozenSet[str]]]] = {}

    def is_new(self, moment: Moment) -> bool:
        """Return whether no moment has been seen from which at least as much may follow, and note this one."""
        alike = self._faults.setdefault(self._likeness(moment), [])
        left, messages, lost = moment.faults, moment.messages_lost, moment.lost
        if any(other[0] >= left and other[1] <= messages and other[2] <= lost for other in alike):
            return False
        alike.append((left, messages, lost))
        return True

    def _likeness(self, moment: Moment) -> Hashable:
        now = moment.sim.now
        states = tuple(
            (state.name, state.active_interval, *(at and at - now for at in (state.deadline, state.preempt_at)))
            for state in moment.sim.states
        )
        unusual = tuple(now - _since(self._way, self._every, moment, vip) for vip in self._every.vips)
        return states, moment.sim.in_flight(), frozenset(moment.running.items()), unusual, moment.waves


def counterexample(way: Way, faults: int = 0) -> List[str]:
    """Return the shortest play in which two members hold a VIP, or nobody for longer than said; [] if there is none.

    :param faults: how many there may be on the way: a member is lost, an Advertisement is lost, the run ends
    """
    every = moves.numbered(way)
    begun = moves.first(way, every, faults)
    begin = begun.sim.history[0]
    way, every = _judged(way, every, begun)
    serial = itertools.count()
    queue = [(0, next(serial), begun, "")]
    seen, moved = Seen(way, every), Seen(way, every)
    while queue:
        _length, _serial, moment, wrong = heapq.heappop(queue)
        if wrong:
            return timeline(every, begin, moment, wrong)
        for after, is_long in _following(way, every, moment, moved):
            after, wrong = _judge(way, every, after, is_long)
            if wrong or (after.waves and seen.is_new(after)):
                heapq.heappush(queue, (len(after.said), next(serial), after, wrong))
    return []


def _judged(way: Way, every: Numbered, begun: Moment) -> Tuple[Way, Numbered]:
    """Leave out what is wrong before the run: a VIP that two members hold, or that nobody holds."""
    holders = {vip: len(_holders(every, begun.sim.holding, vip)) for vip in every.vips}
    gone = {vip: allowed for vip, allowed in way.gone.items() if holders.get(vip) == 1}
    return way._replace(gone=gone), every._replace(vips=[vip for vip in every.vips if holders[vip] < 2])


def _following(way: Way, every: Numbered, moment: Moment, seen: Seen) -> Iterator[Tuple[Moment, bool]]:
    """Yield what may follow, each with whether a long time has passed since the move."""
    if not moment.said:  # an Advertisement may be lost before the first step
        waiting = functools.partial(moment.begin, "")
        yield from ((after, False) for after in moves.passing(waiting, every.short) if after.messages_lost)
    for move in moves.moves(way, every, moment):
        moved = move(frozenset())
        if seen.is_new(moved):
            if moved.waves:
                yield from ((after, False) for after in moves.passing(move, every.short))
            yield from ((after, True) for after in moves.passing(move, every.long))


def _judge(way: Way, every: Numbered, moment: Moment, is_long: bool) -> Tuple[Moment, str]:
    """Return a moment, and what is wrong at it or has been since the last one; '' if nothing is.

    A long time after a move the run may have ended there, which is a fault.
    """
    wrong = _split(every, moment) or _gone(way, every, moment)
    may_have_ended = is_long and moment.faults > 0
    if not wrong and (may_have_ended or not moment.waves):
        wrong = _left_alone(way, every, moment)
        if wrong and moment.waves:
            moment = moment._replace(said=(*moment.said, (moment.said[-1][0], "the run ends")))
    if not wrong:
        _forget(way, every, moment)
    return moment, wrong


def _split(every: Numbered, moment: Moment) -> str:
    """A lost Advertisement may be the one to which a member would have given way: then the next one counts.

    An agent that resigns waits for no longer than its successor needs at most.
    """
    allowed = HANDOVER + moment.messages_lost * (every.interval + machine.LINGER_MAX)
    for vip in every.vips:
        if _longest(every, moment, vip, two=True) > allowed:
            last = next(each for each in reversed(moment.sim.history) if len(_holders(every, each.holding, vip)) > 1)
            return f"{vip} is held by {' and '.join(_holders(every, last.holding, vip))}"
    return ""


def _gone(way: Way, every: Numbered, moment: Moment) -> str:
    """Where a member was lost a VIP may be gone for longer than said, but not at the end."""
    for vip, allowed in way.gone.items() if not moment.lost else ():
        longest = _longest(every, moment, vip, two=False)
        if longest > allowed + moment.messages_lost * every.settled + MILLISECOND:
            seconds = longest / machine.SECOND, allowed / machine.SECOND
            return "{} is held by nobody for {:g} s, although at most {:g} s are said".format(vip, *seconds)
    return ""


def _left_alone(way: Way, every: Numbered, moment: Moment) -> str:
    """Return the VIP that nobody holds at the end although a router with it runs."""
    for vip in way.gone:
        able = _able(every, moment, vip)
        if able and not _holders(every, moment.sim.holding, vip):
            return f"{vip} is held by nobody, although {' and '.join(able)} could"
    return ""


def _able(every: Numbered, moment: Moment, vip: str) -> List[str]:
    """Return the members that run a router with the VIP."""
    return [
        member
        for member, configuration in moment.running.items()
        if any(vip in every.instances[at].advertisement.addresses for at in every.numbers[member, configuration])
    ]


def _holders(every: Numbered, holding: AbstractSet[int], vip: str) -> List[str]:
    held = (every.instances[at] for at in holding)
    return sorted({instance.member for instance in held if vip in instance.advertisement.addresses})


def _longest(every: Numbered, moment: Moment, vip: str, two: bool) -> int:
    """Return the longest time in which two members hold a VIP, or nobody does."""
    longest, since = 0, None
    for state in [*moment.sim.history, simulator.Moment(moment.sim.now, frozenset())]:
        if since is not None:
            longest = max(longest, state.at - since)
        holders = _holders(every, state.holding, vip)
        is_so = len(holders) > 1 if two else not holders
        since = (state.at if since is None else since) if is_so else None
    return longest


def _since(way: Way, every: Numbered, moment: Moment, vip: str) -> int:
    """Return since when a VIP has had several holders, or none although it had one before the run; else now."""
    since = moment.sim.now
    for state in reversed(moment.sim.history):
        count = len(_holders(every, state.holding, vip))
        if count == 1 or (count == 0 and vip not in way.gone):
            break
        since = state.at
    return since


def _forget(way: Way, every: Numbered, moment: Moment) -> None:
    """Drop what was judged: all before the last state, unless a VIP has no holder, or several, since earlier."""
    history = moment.sim.history
    since = min((_since(way, every, moment, vip) for vip in every.vips), default=moment.sim.now)
    while len(history) > 1 and history[1].at <= since:
        del history[0]


def timeline(every: Numbered, begin: simulator.Moment, moment: Moment, wrong: str) -> List[str]:
    """Return a play in lines: what is done, which router changes its state, and what is wrong at the end."""
    held = ((vip, " and ".join(_holders(every, begin.holding, vip)) or "nobody") for vip in every.vips)
    lines = [(begin.at, 0, f"{vip} is held by {holders}.") for vip, holders in held]
    lines += [(at, 1, f"{what}.") for at, what in moment.said]
    lines += [
        (at, 2, f"  {every.instances[number].member}: {change.before} -> {change.after} ({change.reason}).")
        for at, number, change in moment.sim.changes
    ]
    lines.sort(key=lambda line: line[:2])
    lines.append((moment.sim.now, 3, f"{wrong}."))
    return [f"{(at - begin.at) / machine.SECOND:7.3f} s  {text}" for at, _order, text in lines]
