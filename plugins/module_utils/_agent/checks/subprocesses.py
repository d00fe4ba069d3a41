# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Programs: started as somebody, each in a session of its own, and noticed when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import Callable, Dict, NoReturn, Optional, Sequence

from ..runtime.accounts import Account
from ..runtime.loop import Loop, Timer
from . import kernel
from .outcome import MILLION, in_words

KILL_DELAY = MILLION  # from SIGTERM to SIGKILL
NOT_STARTED = 127  # as a shell's

OnEnd = Callable[[str], None]  # '' where all went well, otherwise what is wrong


class Child:
    """One program under way. ``report`` is a pipe through which it tells why it could not even be started."""

    def __init__(self, loop: Loop, pid: int, report: int, on_end: OnEnd) -> None:
        self.pid, self.report, self.on_end = pid, report, on_end
        self._loop = loop
        self._last_word: Optional[Timer] = None

    @property
    def stopping(self) -> bool:
        return self._last_word is not None

    def stop(self) -> None:
        """Ask it to end, with all of its group; a second later there is no more asking."""
        if not self.stopping:
            self.send(signal.SIGTERM)
            self._last_word = self._loop.after(KILL_DELAY, self.kill)

    def kill(self) -> None:
        self.send(signal.SIGKILL)

    def send(self, number: int) -> None:
        """Its number belongs to it, and to its group, until it is reaped: so nobody else is ever hit."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:  # so young that it has no group of its own yet
                os.kill(self.pid, number)

    def reap(self) -> Optional[str]:
        """Return how it ended, or None while it has not. What it was asked to take along is killed with it."""
        if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return None
        if self._last_word:
            self._last_word.cancel()
            self.kill()
        status = os.waitpid(self.pid, 0)[1]
        return self._reported() or _ending(status)

    def _reported(self) -> str:
        try:
            return os.read(self.report, 512).decode(errors="replace")
        except BlockingIOError:  # somebody who has inherited it holds it open
            return ""
        finally:
            os.close(self.report)


class Children:
    """All programs of this process. There may be only one of these, because there is one SIGCHLD."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._children: Dict[int, Child] = {}
        self._bell, self._ringer = socket.socketpair()
        for end in (self._bell, self._ringer):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
        loop.watch(self._bell.fileno(), self._ring)

    def start(self, command: Sequence[str], account: Account, on_end: OnEnd) -> Child:
        """Run a program. Raises OSError when there cannot be another process."""
        report, reporter = os.pipe()
        os.set_blocking(report, False)
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os.close(report)
            os.close(reporter)
            raise
        if not pid:
            _become(command, account, reporter, parent)
        os.close(reporter)
        child = self._children[pid] = Child(self._loop, pid, report, on_end)
        return child

    @property
    def running(self) -> int:
        """How many there are."""
        return len(self._children)

    def kill(self) -> None:
        """End all of them now, without a word."""
        for child in self._children.values():
            child.kill()

    def _ring(self, _ready: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4096)
        for child in list(self._children.values()):
            ending = child.reap()
            if ending is not None:
                del self._children[child.pid]
                child.on_end(ending)


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return f"exit code {code}" if code else ""


def _become(command: Sequence[str], account: Account, reporter: int, parent: int) -> NoReturn:
    """Turn this process into the program. Whatever goes wrong is reported, and nothing else is left of us."""
    try:
        os.setsid()
        os.chdir("/")
        os.umask(0o022)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        _heed_all_signals()
        account.assume()
        kernel.die_with_parent()
        if os.getppid() == parent:  # otherwise it has died just before
            os.execve(command[0], list(command), account.environment())
    except Exception as fault:
        os.write(reporter, f"cannot run {command[0]}: {in_words(fault)}".encode())
    finally:
        os._exit(NOT_STARTED)


def _heed_all_signals() -> None:
    """exec() keeps what is ignored: by Python, by the checks process, by whoever has started the agent."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
