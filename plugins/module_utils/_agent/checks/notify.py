# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs notify programs without waiting for them. Each program gets the changes in their order."""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, Dict, Sequence, Tuple

from ..runtime.loop import MILLION, Loop
from .outcome import in_words, seconds
from .subprocesses import Child, Children

LIMIT = 30 * MILLION
MAX_QUEUED = 100  # calls of a program that hangs; the oldest is dropped first

Call = Tuple[Sequence[str], str]  # a command, and the user that runs it


def _subject(call: Call) -> Call:
    """Return what a call is about: all but the state and the priority, which end its arguments."""
    command, user = call
    return command[:-2], user


class Notifications:
    """One queue for each program, whatever its arguments."""

    def __init__(self, loop: Loop, children: Children, log: Callable[[str], None], limit: int = LIMIT) -> None:
        self._loop, self._children, self._log, self._limit = loop, children, log, limit
        self._waiting: Dict[str, Deque[Call]] = {}
        self._running: Dict[str, Child] = {}
        self._when_idle: Callable[[], None] = lambda: None

    def add(self, command: Sequence[str], user: str) -> None:
        """Run a program, or queue the call; unless the last one in the queue that is about the same says the same."""
        program = command[0]
        calls = self._waiting.setdefault(program, deque())
        if (command, user) in [call for call in calls if _subject(call) == _subject((command, user))][-1:]:
            return
        if len(calls) == MAX_QUEUED:
            self._log(f"notify: {' '.join(calls.popleft()[0])} is left out: {MAX_QUEUED} later calls wait.")
        calls.append((command, user))
        if program not in self._running:
            self._next(program)

    def finish(self, when_idle: Callable[[], None]) -> None:
        """Call ``when_idle`` once no program is running or queued."""
        self._when_idle = when_idle
        if not self._running:
            when_idle()

    def _next(self, program: str) -> None:
        while self._waiting[program]:
            if self._start(program, *self._waiting[program].popleft()):
                return
        del self._waiting[program]
        if not self._running:
            self._when_idle()

    def _start(self, program: str, command: Sequence[str], user: str) -> bool:
        def ended(fault: str) -> None:
            timer.cancel()
            late = self._running.pop(program).stopping
            self._report(command, f"no end within {seconds(self._limit)}" if late else fault)
            self._next(program)

        try:
            child = self._children.start(command, user, ended)
        except OSError as fault:
            self._report(command, in_words(fault))
            return False
        timer = self._loop.after(self._limit, child.stop)
        self._running[program] = child
        return True

    def _report(self, command: Sequence[str], fault: str) -> None:
        if fault:
            self._log(f"notify: {' '.join(command)}: {fault}.")
