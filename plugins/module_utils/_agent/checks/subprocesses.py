# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs programs as given users, each in a session of its own, and reports when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import Callable, Dict, NoReturn, Optional, Sequence

from ..runtime import accounts
from ..runtime.loop import MILLION, Loop, Timer
from . import kernel
from .outcome import in_words

KILL_DELAY = MILLION  # from SIGTERM to SIGKILL
NOT_STARTED = 127  # as a shell's
CANNOT_RUN = "cannot run"  # how the reason begins

OnEnd = Callable[[str], None]  # '' for success, otherwise what went wrong


class Child:
    """A running program. Through the pipe ``report`` it says why it could not be started."""

    def __init__(self, loop: Loop, pid: int, report: int, on_end: OnEnd) -> None:
        self.pid, self.report, self.on_end = pid, report, on_end
        self._loop = loop
        self._kill_timer: Optional[Timer] = None

    @property
    def stopping(self) -> bool:
        return self._kill_timer is not None

    def stop(self) -> None:
        """Send SIGTERM to its process group; a second later SIGKILL."""
        if not self.stopping:
            self.send(signal.SIGTERM)
            self._kill_timer = self._loop.after(KILL_DELAY, self.kill)

    def kill(self) -> None:
        self.send(signal.SIGKILL)

    def send(self, number: int) -> None:
        """Send a signal to its group. Until it is reaped, its number cannot belong to another process."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:  # it has not created its group yet
                os.kill(self.pid, number)

    def reap(self) -> Optional[str]:
        """Return how it ended, or None while it runs. If it was stopped, the rest of its group is killed."""
        if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return None
        if self._kill_timer:
            self._kill_timer.cancel()
            self.kill()
        status = os.waitpid(self.pid, 0)[1]
        return self._reported() or _ending(status)

    def _reported(self) -> str:
        try:
            return os.read(self.report, 512).decode(errors="replace")
        except BlockingIOError:  # a process that inherited the pipe holds it open
            return ""
        finally:
            os.close(self.report)


class Children:
    """All programs of this process. Only one instance may exist, because it handles SIGCHLD."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._children: Dict[int, Child] = {}
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        loop.watch(self._reader.fileno(), self._reap_all)

    def start(self, command: Sequence[str], user: str, on_end: OnEnd) -> Child:
        """Run a program. Raises OSError if no process can be created.

        The new process looks the user up, so that this one does not wait for a directory.
        """
        report, reporter = os.pipe()
        os.set_blocking(report, False)
        parent = os.getpid()
        # Until the child has unblocked it: at first it ignores SIGTERM as this process does, and would lose it.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            pid = os.fork()
            if not pid:
                _exec(command, user, reporter, parent)
        except OSError:
            os.close(report)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            os.close(reporter)
        child = self._children[pid] = Child(self._loop, pid, report, on_end)
        return child

    @property
    def running(self) -> int:
        """How many there are."""
        return len(self._children)

    def kill(self) -> None:
        """Kill all of them."""
        for child in self._children.values():
            child.kill()

    def _reap_all(self, _ready: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._reader.recv(4096)
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


def _exec(command: Sequence[str], user: str, reporter: int, parent: int) -> NoReturn:
    """Turn this process into the program; report what goes wrong, and exit."""
    try:
        os.setsid()
        os.chdir("/")
        os.umask(0o022)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        _restore_signals()
        _restore_oom_score()
        account = accounts.named(user)
        account.assume()
        kernel.die_with_parent()
        if os.getppid() == parent:  # otherwise the parent has just ended
            os.execve(command[0], list(command), account.environment())
    except Exception as fault:
        os.write(reporter, f"{CANNOT_RUN} {command[0]}: {in_words(fault)}".encode())
    finally:
        os._exit(NOT_STARTED)


def _restore_signals() -> None:
    """exec keeps ignored signals: those of Python, of the checks process, and of the agent's parent."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _restore_oom_score(path: str = "/proc/self/oom_score_adj") -> None:
    """The agent may be the last process that the kernel ends for memory; a program of a check is like any other."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as score:
        if int(score.read()) >= 0:
            return
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as score:
        score.write(b"0")
