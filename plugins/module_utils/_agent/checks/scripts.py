# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a program: exit code 0 is a success."""

from __future__ import annotations

from typing import Optional, Sequence

from ..runtime.loop import Loop, Timer
from . import patience
from .outcome import Done, Outcome, Probe, in_words, seconds
from .subprocesses import CANNOT_RUN, Child, Children


class Script(Probe):
    """A program that exceeds its time-out is a failure at once, although ending it may take a while.

    What this process is late by does not count, as in `network.NetworkProbe`. Until it has ended no other one is
    started; that time counts towards the next run.
    """

    def __init__(self, loop: Loop, children: Children, command: Sequence[str], user: str, timeout: int) -> None:
        self._loop, self._children, self._command, self._user = loop, children, command, user
        self._timeout = timeout
        self._child: Optional[Child] = None
        self._done: Optional[Done] = None
        self._timer: Optional[Timer] = None
        self._began = 0

    def start(self, done: Done) -> None:
        self._done, self._began = done, self._loop.now()
        self._wait(patience.begin(self._timeout, self._began))
        if not self._child:
            self._spawn()

    def stop(self) -> None:
        self._done = None
        if self._timer:
            self._timer.cancel()
        if self._child:
            self._child.stop()

    def _spawn(self) -> None:
        try:
            self._child = self._children.start(self._command, self._user, self._ended)
        except OSError as fault:
            self._end(f"{CANNOT_RUN} {self._command[0]}: {in_words(fault)}")

    def _ended(self, fault: str) -> None:
        late = self._child and self._child.stopping
        self._child = None
        if not late:
            self._end(fault)
        elif self._done:  # the next run has been waiting for this
            self._spawn()

    def _wait(self, wait: patience.Patience) -> None:
        self._waiting = wait
        self._timer = self._loop.at(wait.wake, self._woken)

    def _woken(self) -> None:
        wait = patience.woken(self._waiting, self._loop.now())
        if wait.is_over:
            self._timed_out()
        else:
            self._wait(wait)

    def _timed_out(self) -> None:
        self._end(f"no end within {seconds(self._timeout)}")
        if self._child:
            self._child.stop()

    def _end(self, fault: str) -> None:
        done, self._done = self._done, None
        if self._timer:
            self._timer.cancel()
        if done:
            known = not fault.startswith(CANNOT_RUN)
            done(Outcome(not fault, fault or "exit code 0", self._loop.now() - self._began, known=known))
