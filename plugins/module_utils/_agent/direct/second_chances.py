# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Proves that a server gives second chances: see ``rulesets``. A flush of its ruleset takes them, and nobody notices.

A segment of no connection is answered by a reset, which has the mark of the segment on Linux. So one that comes to the
server without the mark and is answered with it has been handed on. Another one, which has the mark from the beginning,
proves that resets have it at all. Without an answer nothing is known: a firewall may drop such segments.
"""

from __future__ import annotations

import random
from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple

from ..net import segments
from ..runtime.loop import MILLION, Loop
from .proofs import ECN, FALL, TRAFFIC_CLASS, Key

INTERVAL = 5 * MILLION  # between two questions
HANDED_ON, MARKED = range(2)  # what an answer proves
NUMBERS = 1 << 32


class Chance(NamedTuple):
    """What is known of a server.

    :ivar given: whether it gives second chances; None: not known
    :ivar failures: how many questions in a row have found that it does not, or nothing
    :ivar asked: when the last one was sent
    :ivar answers: those to the last one: what each proves, and whether it had the mark
    """

    given: Optional[bool] = None
    failures: int = 0
    asked: Optional[int] = None
    answers: Tuple[Tuple[int, bool], ...] = ()


def judge(known: Chance) -> Chance:
    """Return what is known after the answers to a question."""
    answers = dict(known.answers)
    given = answers.get(HANDED_ON) if answers.get(MARKED) else None
    failures = 0 if given else known.failures + 1
    return Chance(given if given or failures >= FALL else known.given, failures)


class SecondChances:
    """The servers of one link."""

    def __init__(self, loop: Loop, wire: Any) -> None:
        self._loop, self._wire = loop, wire
        self._known: Dict[Key, Chance] = {}
        self._asked: Dict[int, Tuple[Key, int]] = {}  # by the number of a segment, which its answer has: what it proves

    def given(self, key: Key) -> Optional[bool]:
        """Return whether a server gives second chances for a VIP; None if that is not known."""
        return self._known.get(key, Chance()).given

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget all servers but these."""
        self._known = {key: self._known[key] for key in keys if key in self._known}

    def ask(self, key: Key, ends: segments.Ends, mac: str) -> bool:
        """Ask a server that answers for the VIP, if it is time to; return whether something else is known of it now."""
        now, before = self._loop.now(), self._known.get(key, Chance())
        if before.asked is not None and now - before.asked < INTERVAL:
            return False
        after = judge(before) if before.asked is not None else before
        self._known[key] = after._replace(asked=now)
        self._asked = {number: asked for number, asked in self._asked.items() if asked[0] != key}
        for proves, traffic_class in ((MARKED, TRAFFIC_CLASS | ECN), (HANDED_ON, 0)):
            number = random.randrange(NUMBERS)
            self._asked[number] = key, proves
            self._wire.send(segments.write(ends, segments.ACK, 0, traffic_class, number), mac)
        return after.given is not before.given

    def take(self, segment: segments.Segment) -> None:
        """Take an answer."""
        key, proves = self._asked.get(segment.sequence, (("", 0, ""), 0))
        if segment.flags == segments.RST and key in self._known and key[0] == segment.ends.source:
            known, has_mark = self._known[key], segment.traffic_class & ~ECN == TRAFFIC_CLASS
            self._known[key] = known._replace(answers=(*known.answers, (proves, has_mark)))
