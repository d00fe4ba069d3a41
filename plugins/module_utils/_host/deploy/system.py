# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host that runs the agent: reads its state, and takes each single step. Which steps, and when: see ``steps``."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import re
import signal
import socket
import tempfile
import time
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

from ..._agent.runtime import status_socket
from ..._agent.vrrp.core import packet
from ..._shared.engines import DAEMONS, HAPROXY, KEEPALIVED, NATIVE, UNITS, Daemon
from ..candidates import candidate_of
from ..read import facts, obstacles, processes, reader
from ..read.reader import Find, Run, last_words, show
from ..write import files
from .steps import ConflictingService, Unit
from .units import Paths

PATHS = Paths()

APPLY_TIMEOUT = 40.0  # seconds for a running daemon to apply a change
POLL_INTERVAL = 0.05
CHANGED = "StateChangeTimestampMonotonic"
PROPERTIES = ("Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "NeedDaemonReload", "MainPID")


class Failed(Exception):
    """A step cannot be taken; the text is a sentence for the user."""


class Host:
    """``run`` and ``find`` are AnsibleModule's."""

    def __init__(self, run: Run, find: Find, paths: Paths = PATHS, proc: str = "/proc") -> None:
        self.run, self.find, self.paths, self._proc = run, find, paths, proc

    # -- its state

    def has_systemd(self) -> bool:
        return facts.has_systemd()

    def has_raw_sockets(self) -> bool:
        try:
            socket.socket(socket.AF_INET, socket.SOCK_RAW, packet.PROTOCOL).close()
        except PermissionError:
            return False
        return True

    def python_version(self, python: str) -> Tuple[int, ...]:
        """Return the version of a Python, () if it is none."""
        if not os.access(python, os.X_OK):
            return ()
        code, out, _err = self.run([python, "-I", "-c", "import sys; print(*sys.version_info[:2])"])
        return tuple(int(part) for part in out.split()) if code == 0 and re.fullmatch(r"\d+ \d+\s*", out) else ()

    def users(self) -> FrozenSet[str]:
        """Return which of the agent's users exist."""
        known = {entry.pw_name for entry in pwd.getpwall()}
        return frozenset(daemon.program for daemon in DAEMONS if daemon.program in known)

    def content(self, path: str) -> bytes:
        return reader.content(path)

    def pointer(self, link: str) -> str:
        try:
            return os.readlink(link)
        except OSError:
            return ""

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def units(self) -> Dict[str, Unit]:
        """Return the state of the agent's two units."""
        found = {}
        for shown in self._show([daemon.unit for daemon in DAEMONS]):
            pid = int(shown.get("MainPID", "0"))
            found[shown.get("Id", "")] = Unit(
                active=shown.get("ActiveState") in ("active", "reloading"),
                enabled=shown.get("UnitFileState") == "enabled",
                outdated=shown.get("NeedDaemonReload") == "yes",
                pid=pid,
                archive=self._archive_of(pid),
                loaded=self._loaded(shown.get("Id", "")) if pid else "",
                masked=shown.get("LoadState") == "masked",
            )
        return found

    def _loaded(self, unit: str) -> str:
        """Return the SHA-256 of the configuration that a daemon has loaded, '' if it does not say."""
        (socket_path,) = [daemon.status_socket for daemon in DAEMONS if daemon.unit == unit]
        return str((self.report(socket_path) or {}).get("config_sha256", ""))

    def _show(self, units: Sequence[str]) -> List[Dict[str, str]]:
        return show(self.run, units, PROPERTIES)

    def _archive_of(self, pid: int) -> str:
        """Return the version that a process runs: it has mapped that file, see ``archive.START``."""
        found = re.search(self._pattern(), self._maps(pid)) if pid else None
        return found.group(0) if found else ""

    def _pattern(self) -> str:
        return re.escape(self.paths.library) + r"/agent-[0-9a-f]+\.pyz"

    def _maps(self, pid: int) -> str:
        return self.content(f"{self._proc}/{pid}/maps").decode(errors="replace")

    def archives_in_use(self) -> FrozenSet[str]:
        """Return the versions that any process runs, including old ones that finish their connections."""
        pids = (int(entry) for entry in os.listdir(self._proc) if entry.isdigit())
        return frozenset(path for pid in pids for path in re.findall(self._pattern(), self._maps(pid)))

    def conflicting(self) -> Tuple[ConflictingService, ...]:
        """Return the running programs of the native engine."""
        found = []
        shown = {each.get("Id", ""): each for each in self._show(UNITS[NATIVE])}
        for name, unit in zip((HAPROXY, KEEPALIVED), UNITS[NATIVE]):
            pid = int(shown.get(unit, {}).get("MainPID", "0"))
            ours = facts.is_ours(unit, self.paths.units)
            if pid:
                found.append(ConflictingService(name, pid, unit, ours))
            else:
                others = (other for other in processes.named([name], self._proc) if other.on_this_network)
                # The first one; the others are its children.
                found += [ConflictingService(name, other.pid, "", False, str(other.runs_in)) for other in others][:1]
        return tuple(found)

    def enabled_conflicting(self) -> FrozenSet[str]:
        return frozenset(each["Id"] for each in self._show(UNITS[NATIVE]) if each.get("UnitFileState") == "enabled")

    def unwritable(self, daemons: Sequence[Daemon]) -> Tuple[str, ...]:
        """Return a sentence for each file of some daemons that cannot be written."""
        own = [path for daemon in daemons for path in (self.paths.config(daemon), self.paths.unit(daemon))]
        return tuple(obstacles.of_files([self.paths.link, *own] if own else []).values())

    def leftovers(self) -> Tuple[str, ...]:
        """Return the paths that an installation has left."""
        # The units come last, so that an interrupted removal can still be recognised by them.
        wanted = [self.paths.configuration, self.paths.library]
        wanted += [self.paths.unit(daemon) for daemon in DAEMONS]
        return tuple(path for path in wanted if files.is_left(path))

    def report(self, path: str) -> Optional[Dict[str, Any]]:
        """Return the report of a daemon at its status socket, or None if none answers."""
        try:
            return status_socket.fetch(path)
        except status_socket.Refused:
            return None

    # -- the steps

    def check_config(self, python: str, archive: str, text: str, path: str) -> List[str]:
        """Let a version of the agent check a configuration; return its errors."""
        with tempfile.TemporaryDirectory() as folder:  # only root can read it
            candidate = os.path.join(folder, os.path.basename(path))
            with open(candidate, "w", encoding="utf-8") as file:
                file.write(text)
            code, out, err = self.run([python, "-I", archive, "check-config", "--config", candidate])
        if code == 0:
            return []
        errors = [line.strip().replace(candidate, path) for line in (err or out).splitlines() if line.strip()]
        return errors or [f"{path} is refused without a word (exit code {code})."]

    def create_user(self, name: str) -> None:
        options = ["--system", "--user-group", "--no-create-home", "--home-dir=/", "--shell=/usr/sbin/nologin"]
        self._must(["useradd", *options, name])

    def remove_user(self, name: str) -> None:
        self._must(["userdel", name])

    def write(self, path: str, content: bytes) -> None:
        """Write a file that all users can read, atomically."""
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        # With this name an interrupted write counts as an unused version.
        with candidate_of(path, prefix="agent-new-", suffix=".pyz") as candidate:
            candidate.file.write(content)
            candidate.file.flush()
            os.fchmod(candidate.file.fileno(), 0o755)
            os.fsync(candidate.file.fileno())
            os.rename(candidate.path, path)

    def point(self, link: str, target: str) -> None:
        """Set a symbolic link, atomically."""
        os.makedirs(os.path.dirname(link), mode=0o755, exist_ok=True)
        candidate = f"{link}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(candidate)
        os.symlink(target, candidate)
        os.rename(candidate, link)

    def mark(self, path: str) -> None:
        """Create an empty file."""
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        with open(path, "wb"):
            pass

    def remove(self, path: str) -> None:
        files.remove(path)

    def remove_unused_versions(self, desired: str) -> None:
        """Remove the versions that no process runs any more."""
        used = self.archives_in_use() | {desired}
        for path in glob.glob(f"{self.paths.library}/agent-*.pyz"):
            if path not in used:
                os.unlink(path)

    def remove_temp_files(self, targets: Iterable[str]) -> None:
        """Remove the temporary files of an interrupted run: see ``files``. They may contain a password."""
        for path in targets:
            folder, name = os.path.split(path)
            for leftover in glob.glob(f"{folder}/.{name}.*.new"):
                os.unlink(leftover)

    def systemctl(self, *arguments: str) -> None:
        self._must(["systemctl", *arguments])

    def stop(self, unit: str) -> None:
        self._must(["systemctl", "stop", unit])
        self.run(["systemctl", "disable", unit])  # which fails if its file is gone

    def start(self, unit: str) -> None:
        """Start a unit and wait until it is ready.

        `systemctl start` would join a start that is under way, and fail with it although its cause has been mended.
        """
        self._restart(unit)

    def reload(self, daemon: Daemon, unit: Unit) -> None:
        self._signal(daemon, unit, signal.SIGHUP)

    def upgrade(self, daemon: Daemon, unit: Unit, archive: str) -> None:
        """Let the proxy execute the current version in its own process: no connection is cut."""
        self._signal(daemon, unit, signal.SIGUSR2)
        self._wait(daemon, lambda: self._archive_of(int(self._property(daemon.unit, "MainPID") or 0)) == archive)

    def restart(self, daemon: Daemon, unit: Unit, gracefully: bool) -> None:
        """Replace the router's process.

        By the signal it leaves its addresses on the interface, and the new process adopts them before the Active_Down
        timer of a Backup fires: the VIP does not move. A graceful restart releases them, and may take them back.
        """
        if not gracefully:
            with contextlib.suppress(ProcessLookupError):
                os.kill(unit.pid, signal.SIGUSR1)
        self._restart(daemon.unit)

    def _restart(self, unit: str) -> None:
        code, _out, err = self.run(["systemctl", "restart", unit])
        if code:
            raise Failed(f"{unit} does not start: {last_words(self.run, unit) or err.strip()}")

    def _signal(self, daemon: Daemon, unit: Unit, number: int) -> None:
        """Send a signal, and wait until the daemon has notified systemd of RELOADING and then of READY."""
        before = self._property(daemon.unit, CHANGED)
        os.kill(unit.pid, number)
        self._wait(daemon, lambda: self._has_changed(daemon.unit, before))
        fault = (self.report(daemon.status_socket) or {}).get("config_fault")
        if fault:
            raise Failed(f"{daemon.unit} rejects the new configuration and keeps the old one: {fault}")

    def _wait(self, daemon: Daemon, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + APPLY_TIMEOUT
        while not done():
            if time.monotonic() > deadline:
                journal = last_words(self.run, daemon.unit)
                raise Failed(f"{daemon.unit} did not go over to what is new within {APPLY_TIMEOUT:g} s: {journal}")
            time.sleep(POLL_INTERVAL)

    def _has_changed(self, unit: str, before: str) -> bool:
        """Whether a unit has changed its state, and runs again."""
        return self._property(unit, CHANGED) != before and self._property(unit, "SubState") == "running"

    def _property(self, unit: str, name: str) -> str:
        return show(self.run, [unit], [name])[0].get(name, "")

    def _must(self, command: List[str]) -> None:
        code, out, err = self.run(command)
        if code:
            raise Failed(f"{' '.join(command)} failed: {' '.join((err or out).split())} (exit code {code})")
