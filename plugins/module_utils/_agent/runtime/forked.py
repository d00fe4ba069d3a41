# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A child process, forked from one that may be real-time and hold sockets: it inherits neither."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import time
from typing import Callable, NoReturn, Optional, Sequence, Set

from .loop import MILLION, Loop

MIN_DELAY, MAX_DELAY = MILLION // 20, MILLION  # until a process that keeps ending is started again
STABLE_AFTER = 10 * MILLION  # a process that lived longer is started again at once
REAP_INTERVAL = MILLION // 100

# The child ends with its parent, when their connection ends, and not before: a service manager that signals all
# processes of the service at once would otherwise end the notify programs of a daemon that is stopping.
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class RestartDelay:
    """How long to wait before a process that has ended is started again: longer each time that it was short-lived."""

    def __init__(self) -> None:
        self._next = 0

    def after(self, lifetime: int) -> int:
        """Return the delay after a process that lived so long; both are microseconds."""
        delay = 0 if lifetime > STABLE_AFTER else self._next
        self._next = min(MAX_DELAY, max(MIN_DELAY, 2 * delay))
        return delay


class Forked:
    """A child process, and the parent's end of the connection to it."""

    def __init__(self, name: str, serve: Callable[[socket.socket], None], kept: Sequence[int] = ()) -> None:
        """Fork it. Raises OSError.

        :param name: its name in ``ps``, at most 15 characters
        :param serve: runs in the child, with the child's end of the connection
        :param kept: descriptors that the child keeps as well
        """
        self.connection, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.pid = os.fork()
        except OSError:
            self.connection.close()
            end.close()
            raise
        if not self.pid:
            _run_child(name, serve, end, kept)
        end.close()

    @classmethod
    def inherited(cls, pid: int, connection: socket.socket) -> Forked:
        """Return a child that this process has forked before its exec."""
        known = cls.__new__(cls)
        known.pid, known.connection = pid, connection
        return known

    def ending(self) -> Optional[str]:
        """Return how it ended, None while it runs."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return "another part of the process has reaped it"
        if not pid:
            return None
        return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"

    def when_ended(self, loop: Loop, call: Callable[[str], None]) -> None:
        """Reap it, and call with how it ended. It has closed the connection, and dies a moment after that."""
        ending = self.ending()
        if ending is None:
            loop.after(REAP_INTERVAL, lambda: self.when_ended(loop, call))
        else:
            call(ending)

    def kill(self) -> None:
        """Must not be called once ``ending`` has returned how it ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # without CAP_KILL, nobody's is not ours
            os.kill(self.pid, signal.SIGKILL)

    def end(self, timeout: float) -> None:
        """Wait some seconds for its end, then kill it."""
        for limit in (timeout, 1.0):
            until = time.monotonic() + limit
            while time.monotonic() < until:
                if self.ending() is not None:
                    return
                time.sleep(0.002)
            self.kill()


def _run_child(name: str, serve: Callable[[socket.socket], None], end: socket.socket, kept: Sequence[int]) -> NoReturn:
    code = 1
    try:
        # The parent's garbage may include sockets, whose descriptor numbers are soon reused here.
        gc.freeze()
        _detach({2, end.fileno(), *kept})
        with open("/proc/self/comm", "wb") as comm:  # as bytes: an encoding would be imported only now
            comm.write(name.encode())
        serve(end)
        code = 0
    except BaseException:
        with open(2, "w", closefd=False, encoding="utf-8", errors="replace") as sys.stderr:
            sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)  # never return into the parent's code


def _detach(kept: Set[int]) -> None:
    """Drop what was inherited from the parent: descriptors, signal handlers, priority."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(PermissionError):  # an ordinary user may not leave SCHED_IDLE
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(PermissionError):  # nor may a sandbox change its priority
        os.setpriority(os.PRIO_PROCESS, 0, max(0, os.getpriority(os.PRIO_PROCESS, 0)))
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) not in kept:
            with contextlib.suppress(OSError):  # of the listing itself, which is closed already
                os.close(int(entry))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
