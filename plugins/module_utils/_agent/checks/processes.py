# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks that a process of a given name is running, as ``killall -0`` does; notices its end at once."""

from __future__ import annotations

import os
from typing import Callable, Iterator, Optional

from ..runtime.loop import Loop
from . import kernel
from .outcome import Done, Outcome, Probe

COMM_LENGTH = 15  # characters of a name in /proc/*/comm


class Process(Probe):
    """Watches one process of the name: as long as that one runs, /proc is not searched.

    When it ends, another one is searched for, so that a reload, where old and new overlap, is no failure.
    """

    def __init__(self, loop: Loop, name: str, died: Callable[[], None], proc: str = "/proc") -> None:
        self._loop, self._name, self._died, self._proc = loop, name, died, proc
        self._pid = 0
        self._descriptor: Optional[int] = None

    def start(self, done: Done) -> None:
        began = self._loop.now()
        found = is_running(self._pid, self._name, self._proc) or self._find()
        detail = f"process {self._pid}" if found else f"no process {self._name}"
        done(Outcome(found, detail, self._loop.now() - began))

    def stop(self) -> None:
        self._pid = 0
        if self._descriptor is not None:
            self._loop.forget(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _find(self) -> bool:
        """Choose a process to watch, if there is one."""
        self.stop()
        for pid in candidates(self._name, self._proc):
            try:
                descriptor = kernel.pidfd_open(pid)
            except ProcessLookupError:
                continue
            self._pid, self._descriptor = pid, descriptor
            if descriptor is not None:
                self._loop.watch(descriptor, self._gone)
            if is_running(pid, self._name, self._proc):  # again: so the descriptor is of the process that was found
                return True
            self.stop()
        return False

    def _gone(self, _ready: int) -> None:
        self.stop()
        self._died()


def candidates(name: str, proc: str = "/proc") -> Iterator[int]:
    """Yield the processes of a name; those named only by their first argument come last: reading it costs more."""
    pids = [entry for entry in os.listdir(proc) if entry.isdigit()]
    full_name = os.fsencode(name)
    for read_name, expected in ((_comm, full_name[:COMM_LENGTH]), (_program, full_name)):
        for pid in pids:
            if read_name(f"{proc}/{pid}") == expected and is_running(int(pid), name, proc):
                yield int(pid)


def is_running(pid: int, name: str, proc: str = "/proc") -> bool:
    """Whether a process has this name and is alive; a zombie is not."""
    folder = f"{proc}/{pid}"
    state = _content(f"{folder}/stat").rpartition(b") ")[2][:1]
    return state not in (b"", b"Z", b"X") and _is_named(os.fsencode(name), _comm(folder), _program(folder))


def _is_named(name: bytes, comm: bytes, program: bytes) -> bool:
    """Long names with the same beginning differ only in the first argument, unless the process has changed that."""
    if program == name:
        return True
    return comm == name[:COMM_LENGTH] and (len(name) <= COMM_LENGTH or not program.startswith(comm))


def _comm(folder: str) -> bytes:
    return _content(f"{folder}/comm")[:-1]


def _program(folder: str) -> bytes:
    """The first argument, without its folder."""
    return os.path.basename(_content(f"{folder}/cmdline").partition(b"\0")[0])


def _content(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 4096)
        finally:
            os.close(descriptor)
    except OSError:
        return b""  # it has ended meanwhile
