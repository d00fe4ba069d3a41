# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs nft(8), one program after the other, without waiting for it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections import deque
from typing import Callable, Collection, Deque, List, NamedTuple

from ..checks.outcome import in_words
from ..runtime.loop import MILLION, Loop

TIMEOUT = 20 * MILLION  # for a million elements it takes 6 s
REMEMBERED = 64  # processes of the past whose events may be still under way
CHUNK = 65536
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class Ended(NamedTuple):
    """How a program has ended.

    :ivar fault: what is wrong, in words; '' if nothing is
    """

    output: str
    fault: str = ""


Done = Callable[[Ended], None]


class Job(NamedTuple):
    """What nft is to do."""

    arguments: List[str]
    text: str  # its standard input
    done: Done


def has_table(listed: str, family: str, name: str) -> bool:
    """Return whether a list of tables has this one."""
    tables = [item.get("table", {}) for item in json.loads(listed or '{"nftables": []}')["nftables"]]
    return any((table.get("family"), table.get("name")) == (family, name) for table in tables)


class Nft:
    """The program at a path."""

    def __init__(self, loop: Loop, program: str) -> None:
        self._loop, self.program = loop, program
        self._jobs: Deque[Job] = deque()  # the first one runs
        self._pids: Deque[int] = deque(maxlen=REMEMBERED)

    @property
    def pids(self) -> Collection[int]:
        """The processes that it has run of late."""
        return self._pids

    def load(self, text: str, done: Done) -> None:
        """Have nft carry out a file, in one transaction."""
        self._add(Job(["-f", "-"], text, done))

    def list(self, what: List[str], done: Done) -> None:
        """Have nft list something, in JSON."""
        self._add(Job(["-j", "list", *what], "", done))

    def _add(self, job: Job) -> None:
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self._begin()

    def _begin(self) -> None:
        job = self._jobs[0]
        try:
            process = Process(self._loop, [self.program, *job.arguments], job.text, self._end)
        except OSError as error:
            fault = f"{self.program} cannot be run: {in_words(error)}."
            self._loop.after(0, lambda: self._end(Ended("", fault)))
            return
        self._pids.append(process.pid)

    def _end(self, ended: Ended) -> None:
        job = self._jobs.popleft()
        if self._jobs:
            self._begin()
        job.done(ended)


class Process:
    """A program that runs. The end of its output is its end."""

    def __init__(self, loop: Loop, command: List[str], text: str, done: Done) -> None:
        """Start it. Raises OSError."""
        self._loop, self._command, self._done = loop, command, done
        self._output = b""
        self._late = False
        self._errors = os.memfd_create("nft-errors")
        self._reader, writer = os.pipe()
        source = os.memfd_create("nft-input")
        try:
            _write(source, text.encode())
            self.pid = _spawn(command, source, writer, self._errors)
        except OSError:
            os.close(self._reader)
            os.close(self._errors)
            raise
        finally:
            os.close(writer)
            os.close(source)
        os.set_blocking(self._reader, False)
        self._timer = loop.after(TIMEOUT, self._kill)
        loop.watch(self._reader, self._read)

    def _kill(self) -> None:
        self._late = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _read(self, _events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._reader, CHUNK)
            self._output += data
            if not data:
                self._end()

    def _end(self) -> None:
        self._timer.cancel()
        self._loop.forget(self._reader)
        os.close(self._reader)
        status = os.waitpid(self.pid, 0)[1]  # it has closed its output, and is gone at once
        errors = _content(self._errors)
        os.close(self._errors)
        self._done(Ended(self._output.decode(errors="replace"), self._fault(status, errors)))

    def _fault(self, status: int, errors: str) -> str:
        if self._late:
            return f"{self._command[0]} has not ended within {TIMEOUT // MILLION} s."
        if os.WIFSIGNALED(status):
            return f"{self._command[0]} was ended by signal {os.WTERMSIG(status)}."
        if not os.WEXITSTATUS(status):
            return ""
        first = next((line for line in errors.splitlines() if line.strip()), f"exit code {os.WEXITSTATUS(status)}")
        return f"{self._command[0]} refuses: {first.strip().rstrip('.')}."


def _spawn(command: List[str], source: int, output: int, errors: int) -> int:
    descriptors = [(os.POSIX_SPAWN_DUP2, each, number) for number, each in enumerate((source, output, errors))]
    # A service manager may send SIGTERM to all processes of a unit, also to the one that removes the table.
    # Python ignores SIGPIPE, and what is ignored stays so.
    return os.posix_spawn(
        command[0],
        command,
        ENVIRONMENT,
        file_actions=descriptors,
        setsigmask=(signal.SIGTERM,),
        setsigdef=(signal.SIGPIPE,),
    )


def _write(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)


def _content(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        return file.read().decode(errors="replace")
