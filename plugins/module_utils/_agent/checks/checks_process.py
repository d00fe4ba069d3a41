# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's side of a checks process: sends what to check and receives the results, without blocking."""

from __future__ import annotations

import socket
from typing import Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from ..runtime.forked import Forked, RestartDelay
from ..runtime.ipc import Channel, Message
from ..runtime.loop import Loop, Timer
from ..runtime.watchdog import MAX_SILENCE, Watchdog
from . import server
from .outcome import in_words
from .settings import INTERFACE, SCRIPT, Check

FLUSH_TIMEOUT = 1.0  # seconds for the process to receive what is still unsent
MAX_WAITING = 64  # messages that are read before the results among them are reported
MAX_CALLS = 1000  # of notify programs that have not ended; beyond it the oldest is not made again
END_TIMEOUT = 6.0  # seconds until it has ended: a little more than the notify programs have


class Result(NamedTuple):
    """The current state of a check."""

    name: str
    up: bool  # of a file: the number in it is 0
    value: int  # the number in a file, otherwise 0
    detail: str  # "status 200", "connection refused", ...
    known: bool = True  # of `outcome.Outcome`

    @property
    def says(self) -> Tuple[bool, int, bool]:
        """What counts; the detail may differ."""
        return self.up, self.value, self.known


class Run(NamedTuple):
    """The outcome of one run of a check."""

    name: str
    success: bool
    detail: str
    duration: int  # microseconds


class NumberedCheck(NamedTuple):
    """A check, and its number in the checks process."""

    number: int
    check: Check


OnResult = Callable[[Result], None]
OnRun = Callable[[Run], None]
OnMessage = Callable[[str], None]
Serve = Callable[[socket.socket], None]


class Callbacks(NamedTuple):
    """Called with what a process reports."""

    on_result: OnResult
    on_message: OnMessage  # for the log
    on_run: OnRun  # for each run of a check that has ``every``, before ``on_result``


class ChecksProcess:
    """A checks process, which is started again if it ends."""

    def __init__(self, loop: Loop, callbacks: Callbacks, name: str, serve: Serve) -> None:
        """
        :param name: of the process in ``ps``
        :param serve: what it runs
        """
        self._loop, self._name, self._serve = loop, name, serve
        self._on_result, self._on_message, self._on_run = callbacks
        self._checks: Dict[str, NumberedCheck] = {}
        self._names: Dict[int, str] = {}  # of the checks, by their numbers
        self._results: Dict[int, Result] = {}
        self._newest: Dict[int, Result] = {}  # those that are not reported yet
        self._waiting = 0  # messages since the first of them
        self._calls: Dict[int, Tuple[Sequence[str], str]] = {}  # of notify programs that have not ended, in their order
        self._serial = 0
        self._process: Optional[Forked] = None
        self._channel: Optional[Channel] = None
        self._next_start: Optional[Timer] = None
        self._watchdog: Optional[Watchdog] = None
        self._started = 0
        self._restart_delay = RestartDelay()

    def start(self) -> None:
        """Fork the process. Call this while the daemon is small, and before it becomes real-time."""
        self._started = self._loop.now()
        try:
            self._process = Forked(self._name, self._serve)
        except OSError as fault:
            self._on_message(f"The process {self._name} cannot be started: {in_words(fault)}.")
            return self._start_again()
        self._channel = Channel(self._loop, self._process.connection, self._receive, self._process_ended)
        self._watchdog = Watchdog(self._loop, self._process_hangs, MAX_SILENCE)
        for numbered in self._checks.values():
            self._add(numbered)
        for number, call in self._calls.items():
            self._send(server.RUN, number, *call)
        return None

    def serve_by(self, serve: Serve) -> None:
        """Set what the process runs; one that runs something else is replaced, and the results stay."""
        before, self._serve = self._serve, serve
        if self._process and serve is not before:
            self._replace_process(lambda _ending: None)

    @property
    def pid(self) -> int:
        """The checks process, 0 while there is none."""
        return self._process.pid if self._process else 0

    def apply(self, checks: Sequence[Check], script_user: str) -> None:
        """Set all checks. Those that have not changed go on without interruption."""
        before = self._checks
        self._checks = {}
        for check in checks:
            if check.type == INTERFACE:
                continue
            if check.type == SCRIPT:
                check = check._replace(user=check.user or script_user)
            known = before.get(check.name)
            self._checks[check.name] = known if known and known.check == check else self._number(check)
        self._names = {numbered.number: name for name, numbered in self._checks.items()}
        for old in before.values():
            if self._checks.get(old.check.name) != old:
                self._results.pop(old.number, None)
                self._send(server.DROP, old.number)
        for new in self._checks.values():
            if before.get(new.check.name) != new:
                self._add(new)

    def suspect(self, name: str) -> None:
        """Run a check at once, because its target has failed in use."""
        if name in self._checks:
            self._send(server.SUSPECT, self._checks[name].number)

    def run(self, command: Sequence[str], user: str) -> None:
        """Run a notify program; calls of the same program run one after the other. A failure becomes a message.

        A call that the process has not seen to its end when it is replaced is made again: the last call says what is
        true, and whoever is told must not miss it.
        """
        self._serial += 1
        self._calls[self._serial] = (command, user)
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        self._send(server.RUN, self._serial, command, user)

    def stop(self) -> None:
        """End the process. Waits, some seconds at most, until the notify programs have run."""
        process, self._process = self._process, None
        if self._next_start:
            self._next_start.cancel()
        if self._watchdog:
            self._watchdog.stop()
        if process and self._channel:
            self._channel.finish(FLUSH_TIMEOUT)
            process.end(END_TIMEOUT)
            self._channel.close()

    def _number(self, check: Check) -> NumberedCheck:
        self._serial += 1
        return NumberedCheck(self._serial, check)

    def _add(self, numbered: NumberedCheck) -> None:
        known = self._results.get(numbered.number)
        self._send(server.ADD, *numbered, known.up if known else None)

    def _send(self, *request: object) -> None:
        if self._channel:
            self._channel.send(*request)

    def _start_again(self) -> None:
        delay = self._restart_delay.after(self._loop.now() - self._started)
        self._next_start = self._loop.after(delay, self.start)

    def _receive(self, message: Message) -> None:
        """Take a message. Results are reported when no other message waits: a newer one may do away with them."""
        self._take(message)
        self._waiting += bool(self._newest)
        if self._newest and not (self._waiting < MAX_WAITING and self._channel and self._channel.has_more):
            self._report()

    def _take(self, message: Message) -> None:
        if self._watchdog:
            self._watchdog.feed(MAX_SILENCE)
        kind, *rest = message
        if kind == server.ALIVE:
            return
        if kind == server.LOG:
            self._on_message(*rest)
            return
        number, *found = rest
        if kind == server.NOTIFIED:
            self._calls.pop(number, None)
            return
        name = self._names.get(number)
        if name is None:  # it was removed while the message was under way
            return
        if kind == server.RAN:
            self._on_run(Run(name, *found))
        else:
            self._newest[number] = Result(name, *found)

    def _report(self) -> None:
        """Report the results that differ; a new process sends all results again."""
        newest, self._newest, self._waiting = self._newest, {}, 0
        for number, result in newest.items():
            known = self._results.get(number)
            if number in self._names and not (known and known.says == result.says):
                self._results[number] = result
                self._on_result(result)

    def _process_hangs(self) -> None:
        self._on_message(f"The process {self._name} has not reported for 3 s and is started again.")
        self._replace_process(lambda _ending: None)

    def _process_ended(self) -> None:
        self._replace_process(
            lambda ending: self._on_message(f"The process {self._name} has ended ({ending}) and is started again.")
        )

    def _replace_process(self, ended: Callable[[str], None]) -> None:
        """Kill the process, in case it lives on, and start another one.

        :param ended: called with how the process has ended
        """
        self._report()
        process, self._process = self._process, None
        channel, self._channel = self._channel, None
        if self._watchdog:
            self._watchdog.stop()
        if channel:
            channel.close()
        if process:
            process.kill()
            process.when_ended(self._loop, ended)
        self._start_again()
