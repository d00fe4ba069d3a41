# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The checks process: executes its parent's requests, reports results, and ends with its parent."""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Callable, Dict, List, Optional

from ..runtime import accounts, privileges
from ..runtime.ipc import Channel, Message
from ..runtime.loop import MILLION, Loop
from ..runtime.watchdog import REPORT_INTERVAL
from .notify import Notifications
from .outcome import Outcome
from .runner import CheckRunner
from .settings import SCRIPT, Check
from .subprocesses import Children

# From the parent: a check with its number and its known state, the end of a check, a check to run at once, and a
# notify program to run.
ADD, DROP, SUSPECT = "add", "drop", "suspect"  # number, check, up | number | number
RUN = "run"  # number, command, user
# To the parent: the state of a check, the outcome of one run, a notify program that need not run again, a line for the
# log, and a heartbeat.
RESULT, RAN = "result", "ran"  # number, up, value, detail, known | number, success, detail, duration
NOTIFIED, LOG, ALIVE = "notified", "say", "alive"  # number | text | nothing

LAST_NOTIFICATIONS = 5 * MILLION  # what the notify programs have when the parent is gone


def serve(end: socket.socket) -> None:
    """Serve until the parent is gone."""
    Server(Loop(), end).run()


def serve_unprivileged(end: socket.socket) -> None:
    """Serve checks over the network, which parse what strangers answer, without any rights."""
    privileges.drop_all()
    serve(end)


def serve_unprivileged_with_tls(end: socket.socket) -> None:
    """Serve checks by TLS, too. All that it needs is imported first: nobody may not be able to read root's Python."""
    with contextlib.suppress(ImportError):  # each check says so
        import encodings.idna  # noqa: F401 - of the server's name
        import ssl  # noqa: F401

    serve_unprivileged(end)


class Server:
    """Identifies checks by numbers: a changed check has a new one, so late results of the old one are ignored."""

    def __init__(self, loop: Loop, end: socket.socket) -> None:
        self._loop = loop
        self._channel = Channel(loop, end, self._execute, self._end)
        self._children = Children(loop)
        self._notifications = Notifications(loop, self._children, self._log)
        self._runners: Dict[int, CheckRunner] = {}
        self._reported_users: List[str] = []  # users that this process cannot switch to, each logged once

    def run(self) -> None:
        self._report_alive()
        self._loop.run()
        self._children.kill()

    def _execute(self, message: Message) -> None:
        handlers: Dict[str, Callable[..., None]] = {
            ADD: self._add,
            DROP: self._drop,
            SUSPECT: self._suspect,
            RUN: self._run,
        }
        handlers[message[0]](*message[1:])

    def _add(self, number: int, fields: List[Any], was_up: Optional[bool] = None) -> None:
        check = Check.from_json(fields)
        if check.type == SCRIPT:
            self._check_user(check.user)

        def report(up: bool, value: int, detail: str, known: bool) -> None:
            self._channel.send(RESULT, number, up, value, detail, known)

        def report_run(outcome: Outcome) -> None:
            if not self._channel.behind:  # an old run is not worth sending
                self._channel.send(RAN, number, outcome.success, outcome.detail, outcome.duration)

        try:
            self._runners[number] = CheckRunner(self._loop, check, self._children, report, report_run, was_up)
        except ImportError as fault:  # the other checks go on
            why = Outcome(False, f"cannot be checked: {fault}", known=False)
            if check.every:
                report_run(why)
            report(False, 0, why.detail, why.known)

    def _drop(self, number: int) -> None:
        if number in self._runners:
            self._runners.pop(number).stop()

    def _suspect(self, number: int) -> None:
        if number in self._runners:
            self._runners[number].suspect()

    def _run(self, number: int, command: List[str], user: str) -> None:
        self._check_user(user)
        self._notifications.add(command, user, lambda: self._channel.send(NOTIFIED, number))

    def _check_user(self, user: str) -> None:
        """Log once that only root can switch to another user."""
        if accounts.may_change() or user in self._reported_users:
            return
        self._reported_users.append(user)
        account = accounts.named(user)
        if account.name != user:
            self._log(f"Programs run as {account.name} and not as {user}: only root can become another user.")

    def _report_alive(self) -> None:
        if not self._channel.behind:
            self._channel.send(ALIVE)
        self._loop.after(REPORT_INTERVAL, self._report_alive)

    def _log(self, text: str) -> None:
        self._channel.send(LOG, text)

    def _end(self) -> None:
        """The parent is gone: stop all checks, but let queued notify programs run."""
        for runner in self._runners.values():
            runner.stop()
        self._loop.after(LAST_NOTIFICATIONS, self._loop.stop)
        self._notifications.finish(self._loop.stop)
