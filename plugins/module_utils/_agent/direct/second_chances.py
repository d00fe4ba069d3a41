# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Proves that a server gives second chances: see ``rulesets``. A flush of its ruleset takes them, and nobody notices.

A segment of no connection is answered by a reset, which has the mark of the segment on Linux. So one that comes to the
server without the mark and is answered with it has been handed on. Another one, which has the mark from the beginning,
proves that resets have it at all. Without an answer nothing is known: a firewall may drop such segments.

Who answers what was handed on shows which list of servers those have that handed it on and returned it. Each question
is of another bucket, until one is answered by another server than this host's own list says. One without a table
returns nothing, and answers itself.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, Iterable, NamedTuple, Optional, Tuple

from ..net import segments
from ..runtime.loop import MILLION, Loop
from .proofs import ECN, FALL, TRAFFIC_CLASS, Key

INTERVAL = 5 * MILLION  # between two questions
HANDED_ON, MARKED = range(2)  # what an answer proves
NUMBERS = 1 << 32


class Way(NamedTuple):
    """The way of what a server hands on, by this host's list.

    :ivar over: the address of the server that returns it
    :ivar answering: the MAC of the one that answers; '' if it is not known
    """

    over: str = ""
    answering: str = ""


class Answer(NamedTuple):
    """An answer to a question.

    :ivar proves: what
    :ivar has_mark: whether it had the mark
    :ivar mac: of the server that answered
    """

    proves: int
    has_mark: bool
    mac: str


class Chance(NamedTuple):
    """What is known of a server.

    :ivar given: whether it gives second chances; None: not known
    :ivar by_other_list: whether they go to another server than they should
    :ivar failures: how many questions in a row have found that it does not, or nothing
    :ivar asked: when the last one was sent
    :ivar port: from which; 0 if the next one may come from another
    :ivar answers: those to it
    """

    given: Optional[bool] = None
    by_other_list: bool = False
    failures: int = 0
    asked: Optional[int] = None
    port: int = 0
    answers: Tuple[Answer, ...] = ()

    @property
    def has_table(self) -> bool:
        """Whether it is certain that the server has one."""
        return self.by_other_list or bool(self.given and not self.failures)


def judge(known: Chance, expected: str) -> Chance:
    """Return what is known after the answers to a question.

    :param expected: the MAC of the server that should answer what is handed on; '' if it is not known
    """
    answers = {each.proves: each for each in known.answers}
    handed_on = answers.get(HANDED_ON)
    told = handed_on if handed_on and MARKED in answers and answers[MARKED].has_mark else None
    astray = bool(told and told.has_mark and expected not in ("", told.mac))
    given = told.has_mark and not astray if told else None
    asked = known._replace(
        failures=0 if given else known.failures + 1, port=known.port if given is False else 0, answers=()
    )
    return asked._replace(given=given, by_other_list=astray) if given or asked.failures >= FALL else asked


class SecondChances:
    """The servers of one link."""

    def __init__(self, loop: Loop, wire: Any) -> None:
        self._loop, self._wire = loop, wire
        self._known: Dict[Key, Chance] = {}
        self._asked: Dict[int, Tuple[Key, int]] = {}  # by the number of a segment, which its answer has: what it proves
        # The way of what one hands on that comes from an address and a port.
        self.way: Callable[[Key, str, int], Way] = lambda _key, _source, _port: Way()

    def of(self, key: Key) -> Chance:
        """Return what is known of a server for a VIP."""
        return self._known.get(key, Chance())

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget all servers but these."""
        self._known = {key: self._known[key] for key in keys if key in self._known}

    def ask(self, key: Key, ends: segments.Ends, mac: str) -> bool:
        """Ask a server that answers for the VIP, if it is time to; return whether something else is known of it now."""
        now, before = self._loop.now(), self.of(key)
        if before.asked is not None and now - before.asked < INTERVAL:
            return False
        after = judge(before, self._expected(key, ends.source, before.port)) if before.asked is not None else before
        port = after.port or self._other_port(key, ends.source)
        self._known[key] = after._replace(asked=now, port=port)
        self._asked = {number: asked for number, asked in self._asked.items() if asked[0] != key}
        for proves, traffic_class in ((MARKED, TRAFFIC_CLASS | ECN), (HANDED_ON, 0)):
            number = random.randrange(NUMBERS)
            self._asked[number] = key, proves
            segment = segments.write(ends._replace(source_port=port), segments.ACK, 0, traffic_class, number)
            self._wire.send(segment, mac)
        return (after.given, after.by_other_list) != (before.given, before.by_other_list)

    def _expected(self, key: Key, source: str, port: int) -> str:
        way = self.way(key, source, port)
        return way.answering if self.of((*key[:2], way.over)).has_table else ""

    def _other_port(self, key: Key, source: str) -> int:
        """Return a port for which it is known who should answer, if there is one.

        It is never the first one, from which the probes of paths come: a server may have half of a connection of those.
        """
        ports = random.sample(self._wire.ports[1:], len(self._wire.ports) - 1)
        return int(next((port for port in ports if self.way(key, source, port).answering), ports[0]))

    def take(self, segment: segments.Segment, mac: str) -> None:
        """Take an answer."""
        key, proves = self._asked.get(segment.sequence, (("", 0, ""), 0))
        if segment.flags == segments.RST and key in self._known and key[0] == segment.ends.source:
            known, has_mark = self._known[key], segment.traffic_class & ~ECN == TRAFFIC_CLASS
            self._known[key] = known._replace(answers=(*known.answers, Answer(proves, has_mark, mac)))
