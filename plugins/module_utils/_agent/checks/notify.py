# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs notify programs without waiting for them. Each program gets the changes in their order."""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, Dict, NamedTuple, Sequence, Set, Tuple

from ..runtime.loop import MILLION, Loop
from .outcome import in_words, seconds
from .subprocesses import Child, Children

LIMIT = 30 * MILLION
MAX_QUEUED = 100  # calls of a program that hangs; what a later call says otherwise is dropped first, and nothing else


class Call(NamedTuple):
    """One call of a program, and what to do once it need not be made any more."""

    command: Sequence[str]
    user: str
    over: Callable[[], None]

    @property
    def subject(self) -> Tuple[Sequence[str], str]:
        """What it is about: all but the state and the priority, which end its arguments."""
        return self.command[:-2], self.user


class Notifications:
    """One queue for each program, whatever its arguments."""

    def __init__(self, loop: Loop, children: Children, log: Callable[[str], None], limit: int = LIMIT) -> None:
        self._loop, self._children, self._log, self._limit = loop, children, log, limit
        self._waiting: Dict[str, Deque[Call]] = {}
        self._running: Dict[str, Child] = {}
        self._when_idle: Callable[[], None] = lambda: None
        self._leaving_out: Set[str] = set()  # the programs of which that was said, until their queue is empty

    def add(self, command: Sequence[str], user: str, over: Callable[[], None] = lambda: None) -> None:
        """Run a program, or queue the call; unless the last one in the queue that is about the same says the same.

        :param over: called once it has run, failed or been left out
        """
        program, new = command[0], Call(command, user, over)
        calls = self._waiting.setdefault(program, deque())
        if [call.command for call in calls if call.subject == new.subject][-1:] == [command]:
            return over()
        calls.append(new)
        if len(calls) > MAX_QUEUED:
            self._leave_out(program, calls)
        if program not in self._running:
            self._next(program)
        return None

    def _leave_out(self, program: str, calls: Deque[Call]) -> None:
        """Drop the oldest call that a later one about the same makes out of date: the newest state is always told."""
        last = {call.subject: number for number, call in enumerate(calls)}
        outdated = next((number for number, call in enumerate(calls) if number < last[call.subject]), None)
        if outdated is None:
            return
        call = calls[outdated]
        del calls[outdated]
        if program not in self._leaving_out:
            self._leaving_out.add(program)
            self._log(
                f"notify: {' '.join(call.command)} is left out: {MAX_QUEUED} later calls wait. So are more, until all "
                "calls have been made, but never the last one about an instance or a sync group."
            )
        call.over()

    def finish(self, when_idle: Callable[[], None]) -> None:
        """Call ``when_idle`` once no program is running or queued."""
        self._when_idle = when_idle
        if not self._running:
            when_idle()

    def _next(self, program: str) -> None:
        while self._waiting[program]:
            if self._start(program, self._waiting[program].popleft()):
                return
        del self._waiting[program]
        self._leaving_out.discard(program)
        if not self._running:
            self._when_idle()

    def _start(self, program: str, call: Call) -> bool:
        def ended(fault: str) -> None:
            timer.cancel()
            late = self._running.pop(program).stopping
            self._report(call, f"no end within {seconds(self._limit)}" if late else fault)
            self._next(program)

        try:
            child = self._children.start(call.command, call.user, ended)
        except OSError as fault:
            self._report(call, in_words(fault))
            return False
        timer = self._loop.after(self._limit, child.stop)
        self._running[program] = child
        return True

    def _report(self, call: Call, fault: str) -> None:
        if fault:
            self._log(f"notify: {' '.join(call.command)}: {fault}.")
        call.over()
