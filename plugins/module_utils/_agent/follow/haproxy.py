# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gives HAProxy the servers that it should have: its file, which is tested, and the process that runs.

The file comes first. But a disk that is full, or a mistake elsewhere in the file, keeps no server from the process.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Sequence, Set, Tuple

from ..runtime import commands
from . import changes, files, haproxy_file
from .changes import Applied, Changes, Refused
from .haproxy_file import Backend
from .loaded import Loaded
from .runtime_api import Runtime
from .settings import MILLION, Haproxy, Server, Target

PATIENCE = 30 * MILLION  # for a server whose sessions were ended; then it is removed at the next reload


class File:
    """``apply`` may be called at any time: it compares what is with what is wanted, and changes the difference."""

    def __init__(self, about: Haproxy) -> None:
        self._about = about
        self.loaded = Loaded(about.loaded)

    def apply(self, wanted: Sequence[Server]) -> Applied:
        """Make the nodes the servers of each backend. Raises Refused."""
        before, text = self.texts(wanted)
        if text != before:
            self.loaded.replacing(before)
            files.replace(self._about.config, text, lambda path: commands.run(self._about.program, "-c", "-f", path))
        return Applied([])

    def texts(self, wanted: Sequence[Server]) -> Tuple[str, str]:
        """Return what it says, and what it should say. Raises Refused."""
        if not wanted:
            raise Refused("an empty list of servers is not followed.")
        before = text = files.load(self._about.config)
        try:
            for target in haproxy_file.each(before, self._about.backends):
                text = haproxy_file.render(text, haproxy_file.read(text, target), wanted)
        except Refused as refused:
            raise Refused(f"{self._about.config}: {refused}") from refused
        return before, text

    def written(self) -> List[Server]:
        """Return the servers of the first backend. Raises Refused."""
        return list(haproxy_file.read(files.load(self._about.config), self._about.backends[0]).servers)


class Process:
    """The same for the process that runs: what a joining server is like, the file says."""

    def __init__(self, about: Haproxy, drain_for: int, clock: Callable[[], int], file: File) -> None:
        self._about, self._drain_for, self._clock, self._file = about, drain_for, clock, file
        self._runtime = Runtime(about.socket)
        self._leaving: Dict[Tuple[str, str], int] = {}  # backend and name, and since when

    def apply(self, wanted: Sequence[Server]) -> Applied:
        """Make the nodes the servers of each backend. Raises Refused."""
        before, text = self._file.texts(wanted)
        lines: List[str] = []
        again = False
        for target in haproxy_file.each(text, self._about.backends):
            done = self._apply(haproxy_file.read(text, target), target, wanted, before == text)
            lines, again = [*lines, *done.lines], again or done.again
        if before == text:
            self._file.loaded.applied(text)
        return Applied(lines, again)

    def answering(self) -> List[Tuple[str, bool]]:
        """Return whether each server that is checked answers, by its address. Raises Refused."""
        return [found for target in self._about.backends for found in self._runtime.answering(target.name)]

    def _apply(self, backend: Backend, target: Target, wanted: Sequence[Server], is_written: bool) -> Applied:
        present = self._runtime.servers(target.name)
        leaving = self._still_leaving(target.name, {server.name for server in present})
        made = changes.between(present, wanted)
        new = Changes(made.added, made.moved, tuple(each for each in made.dropped if each.name not in leaving))
        back = self._come_back(target.name, present, made)
        if not self._add(backend, target.name, made, is_written):
            return Applied(changes.sentences(target.name, new, len(wanted)))  # by a reload, all at once
        for server in made.moved:
            self._runtime.move(target.name, server, backend.port)
        rest = [self._drop(target.name, server) for server in made.dropped]
        return Applied([*back, *changes.sentences(target.name, new, len(wanted))], any(rest))

    def _still_leaving(self, backend: str, present: Set[str]) -> Set[str]:
        """Return the servers that are to leave; who has gone meanwhile, by a reload, is forgotten."""
        for key in [key for key in self._leaving if key[0] == backend and key[1] not in present]:
            del self._leaving[key]
        return {name for place, name in self._leaving if place == backend}

    def _come_back(self, backend: str, present: Sequence[Server], made: Changes) -> List[str]:
        """Let servers serve that were to leave and are wanted again."""
        lines = []
        for each in present:
            if each not in made.dropped and self._leaving.pop((backend, each.name), None) is not None:
                self._runtime.ready(backend, each.name)
                lines.append(f"{backend}: {each.name} stays after all.")
        return lines

    def _add(self, backend: Backend, name: str, made: Changes, is_written: bool) -> bool:
        """Add servers; return whether the runtime API did it, and not a reload."""
        for server in made.added:
            place = haproxy_file.place(server.address, backend.port)
            refused = self._runtime.add(name, server, place, backend.arguments())
            if refused:
                self._reload(name, server, refused, is_written)
                return False
        return True

    def _reload(self, name: str, server: Server, refused: str, is_written: bool) -> None:
        """Have HAProxy read its file, in which the servers are."""
        because = f"HAProxy does not add {name}/{server.name} while it runs: {' '.join(refused.split())}"
        if not is_written:
            raise Refused(f"{because} It gets it by a reload, once its file has the server.")
        if not self._about.reload:
            raise Refused(f"{because} Set haproxy.reload to what reloads it. Its file has the server already.")
        wrong = commands.run(*self._about.reload)
        if wrong:
            raise Refused(f"{because} Its reload has failed: {wrong}")

    def _drop(self, backend: str, server: Server) -> bool:
        """Drain a server, and remove it once its sessions have ended; return whether it is still there."""
        key, now = (backend, server.name), self._clock()
        if key not in self._leaving:
            self._leaving[key] = now
            self._runtime.drain(backend, server.name)
        waited = now - self._leaving[key]
        if waited < self._drain_for and self._runtime.sessions(backend, server.name):
            return True
        if self._runtime.remove(backend, server.name):
            del self._leaving[key]
            return False
        return waited < self._drain_for + PATIENCE
