# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The host that is to run the agent: what is there, and each single thing that may be done to it.

Everything that reads or changes the host on behalf of the engine is here; what has to be done, and when, is not.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import tempfile
import time
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Sequence, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._host import facts
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.steps import ConflictingService, Unit
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Places
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import DAEMONS, Daemon

PLACES = Places()

Run = Callable[[List[str]], Tuple[int, str, str]]
Find = Callable[[str], Optional[str]]

PATIENCE = 40.0  # seconds until a daemon must have gone over to what is new
LOOK = 0.05
LAST_WORDS = 6  # lines of a journal that are worth repeating
RIVALS = ("keepalived", "haproxy")
PROPERTIES = ("Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "NeedDaemonReload", "MainPID")


class Failed(Exception):
    """Something cannot be done; the text is a sentence for the user."""


class Host:
    """``run`` and ``find`` are AnsibleModule's."""

    def __init__(self, run: Run, find: Find, places: Places = PLACES, proc: str = "/proc") -> None:
        self.run, self.find, self.places, self._proc = run, find, places, proc

    # -- what is there

    def has_systemd(self) -> bool:
        return facts.has_systemd()

    def has_raw_sockets(self) -> bool:
        try:
            socket.socket(socket.AF_INET, socket.SOCK_RAW, packet.PROTOCOL).close()
        except PermissionError:
            return False
        return True

    def python_version(self, python: str) -> Tuple[int, ...]:
        """Return the version of a Python, () where it is none."""
        if not os.access(python, os.X_OK):
            return ()
        code, out, _err = self.run([python, "-I", "-c", "import sys; print(*sys.version_info[:2])"])
        return tuple(int(part) for part in out.split()) if code == 0 and re.fullmatch(r"\d+ \d+\s*", out) else ()

    def users(self) -> FrozenSet[str]:
        """Return which of the agent's users exist."""
        known = {entry.pw_name for entry in pwd.getpwall()}
        return frozenset(daemon.program for daemon in DAEMONS if daemon.program in known)

    def content(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return b""

    def pointer(self, link: str) -> str:
        try:
            return os.readlink(link)
        except OSError:
            return ""

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def units(self) -> Dict[str, Unit]:
        """Return what systemd says of the agent's two units."""
        found = {}
        for said in self._show([daemon.unit for daemon in DAEMONS]):
            pid = int(said.get("MainPID", "0"))
            found[said.get("Id", "")] = Unit(
                active=said.get("ActiveState") in ("active", "reloading"),
                enabled=said.get("UnitFileState") == "enabled",
                outdated=said.get("NeedDaemonReload") == "yes",
                pid=pid,
                archive=self._archive_of(pid),
                renews=self._hears(pid, signal.SIGUSR2),
            )
        return found

    def _show(self, units: Sequence[str], properties: Sequence[str] = PROPERTIES) -> List[Dict[str, str]]:
        said = self.run(["systemctl", "show", f"--property={','.join(properties)}", *units])[1]
        return [dict(line.partition("=")[::2] for line in text.splitlines()) for text in said.strip().split("\n\n")]

    def _archive_of(self, pid: int) -> str:
        """Return the version that a process runs: it has that mapped, see ``archive.START``."""
        found = re.search(self._pattern(), self._maps(pid)) if pid else None
        return found.group(0) if found else ""

    def _hears(self, pid: int, number: int) -> bool:
        """Return whether a process does something when it gets a signal, other than to end (proc(5), SigCgt)."""
        found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", self.content(f"{self._proc}/{pid}/status").decode(), re.MULTILINE)
        return bool(found and int(found.group(1), 16) >> (number - 1) & 1)

    def _pattern(self) -> str:
        return re.escape(self.places.library) + r"/agent-[0-9a-f]+\.pyz"

    def _maps(self, pid: int) -> str:
        return self.content(f"{self._proc}/{pid}/maps").decode(errors="replace")

    def archives_in_use(self) -> FrozenSet[str]:
        """Return the versions that any process runs, also one that a newer version has left to finish."""
        pids = (int(entry) for entry in os.listdir(self._proc) if entry.isdigit())
        return frozenset(path for pid in pids for path in re.findall(self._pattern(), self._maps(pid)))

    def rivals(self) -> Tuple[ConflictingService, ...]:
        """Return the programs that run here and do what the agent does."""
        found = []
        said = {each.get("Id", ""): each for each in self._show([f"{name}.service" for name in RIVALS])}
        for name in RIVALS:
            unit = f"{name}.service"
            pid = int(said.get(unit, {}).get("MainPID", "0"))
            ours = facts.is_ours(unit, self.places.units)
            if pid:
                found.append(ConflictingService(name, pid, unit, ours))
            else:
                found.extend(ConflictingService(name, other, "", False) for other in self._running(name))
        return tuple(found)

    def enabled_rivals(self) -> FrozenSet[str]:
        said = self._show([f"{name}.service" for name in RIVALS])
        return frozenset(each["Id"] for each in said if each.get("UnitFileState") == "enabled")

    def _running(self, name: str) -> Iterator[int]:
        """Yield the first process of a name; its children are not worth a word."""
        pids = sorted(int(entry) for entry in os.listdir(self._proc) if entry.isdigit())
        yield from [pid for pid in pids if self.content(f"{self._proc}/{pid}/comm") == name.encode() + b"\n"][:1]

    def remains(self) -> Tuple[str, ...]:
        """Return all that an installation has left."""
        # The units last: a removal that is cut off is still seen by them.
        wanted = [self.places.configuration, self.places.library]
        wanted += [self.places.unit(daemon) for daemon in DAEMONS]
        return tuple(path for path in wanted if os.path.lexists(path))

    def report(self, path: str) -> Optional[Dict[str, Any]]:
        """Return what a daemon says of itself at its status socket, None where none answers."""
        try:
            return status_socket.fetch(path)
        except status_socket.Refused:
            return None

    # -- what may be done

    def check_config(self, python: str, archive: str, text: str, path: str) -> List[str]:
        """Ask a version of the agent whether it takes a configuration; return what it says against it."""
        with tempfile.TemporaryDirectory() as folder:  # only root reads it
            candidate = os.path.join(folder, os.path.basename(path))
            with open(candidate, "w", encoding="utf-8") as file:
                file.write(text)
            code, out, err = self.run([python, "-I", archive, "check-config", "--config", candidate])
        if code == 0:
            return []
        said = [line.strip().replace(candidate, path) for line in (err or out).splitlines() if line.strip()]
        return said or [f"{path} is refused without a word (exit code {code})."]

    def create_user(self, name: str) -> None:
        self._must(
            [
                "useradd",
                "--system",
                "--user-group",
                "--no-create-home",
                "--home-dir",
                "/",
                "--shell",
                "/usr/sbin/nologin",
                name,
            ]
        )

    def remove_user(self, name: str) -> None:
        self._must(["userdel", name])

    def write(self, path: str, content: bytes) -> None:
        """Write a file for all to read, whole or not at all."""
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        # So that it is a version that nobody runs, should we be cut off here.
        handle, candidate = tempfile.mkstemp(prefix="agent-new-", suffix=".pyz", dir=os.path.dirname(path))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                os.fchmod(handle, 0o755)
                os.fsync(handle)
            os.rename(candidate, path)
        except OSError:
            os.unlink(candidate)
            raise

    def point(self, link: str, target: str) -> None:
        """Make a link point elsewhere, at no moment nowhere."""
        os.makedirs(os.path.dirname(link), mode=0o755, exist_ok=True)
        candidate = f"{link}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(candidate)
        os.symlink(target, candidate)
        os.rename(candidate, link)

    def mark(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        with open(path, "wb"):
            pass

    def remove(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def discard_unused(self, wanted: str) -> List[str]:
        """Remove the versions that nobody runs any more."""
        used = self.archives_in_use() | {wanted}
        old = [path for path in glob.glob(f"{self.places.library}/agent-*.pyz") if path not in used]
        for path in old:
            os.unlink(path)
        return sorted(old)

    def discard_candidates(self, paths: Iterable[str]) -> None:
        """Remove what a run that was cut off has left beside its files: see ``files``. A password may be in it."""
        for path in paths:
            folder, name = os.path.split(path)
            for leftover in glob.glob(f"{folder}/.{name}.*.new"):
                os.unlink(leftover)

    def systemctl(self, *arguments: str) -> None:
        self._must(["systemctl", *arguments])

    def stop(self, unit: str) -> None:
        self._must(["systemctl", "stop", unit])
        self.run(["systemctl", "disable", unit])  # which fails where there is no file any more

    def start(self, unit: str) -> None:
        """Start it; it is ready then."""
        self._begin("start", unit)

    def reload(self, daemon: Daemon, unit: Unit) -> None:
        self._signal(daemon, unit, signal.SIGHUP)

    def renew(self, daemon: Daemon, unit: Unit, archive: str) -> None:
        """Have the version that is now in force take over from the running one: no connection is cut, no VIP moves.

        The proxy becomes it, the router leaves its place to another process.
        """
        self._signal(daemon, unit, signal.SIGUSR2)
        self._wait(daemon, lambda: self._archive_of(self._main_pid(daemon.unit)) == archive)

    def restart(self, daemon: Daemon, unit: Unit, gracefully: bool) -> None:
        """Have a new process take the router's place, where the old one cannot hand over: its unit is another one.

        A router that is killed leaves its addresses on the interface, and its successor adopts them before anybody
        has missed an advertisement too many: the VIP does not move. Gracefully it gives them up, and may win them back.
        """
        if not gracefully:
            with contextlib.suppress(ProcessLookupError):
                os.kill(unit.pid, signal.SIGKILL)
        self._begin("restart", daemon.unit)

    def _begin(self, verb: str, unit: str) -> None:
        code, _out, err = self.run(["systemctl", verb, unit])
        if code:
            raise Failed(f"{unit} does not {verb}: {self._last_words(unit) or err.strip()}")

    def _signal(self, daemon: Daemon, unit: Unit, number: int) -> None:
        """Send a signal that a daemon answers by telling systemd that it changes, and then that it is ready again."""
        before = self._changed(daemon.unit)
        os.kill(unit.pid, number)
        self._wait(daemon, lambda: self._changed(daemon.unit) != before and self._is_settled(daemon.unit))
        fault = (self.report(daemon.status_socket) or {}).get("config_fault")
        if fault:
            raise Failed(f"{daemon.unit} refuses what is new and goes on with the old one: {fault}")

    def _wait(self, daemon: Daemon, done: Callable[[], bool]) -> None:
        late = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > late:
                said = self._last_words(daemon.unit)
                raise Failed(f"{daemon.unit} did not go over to what is new within {PATIENCE:g} s: {said}")
            time.sleep(LOOK)

    def _main_pid(self, unit: str) -> int:
        return int(self._show([unit], ["MainPID"])[0].get("MainPID", "0"))

    def _changed(self, unit: str) -> str:
        return self._show([unit], ["StateChangeTimestampMonotonic"])[0].get("StateChangeTimestampMonotonic", "")

    def _is_settled(self, unit: str) -> bool:
        return self._show([unit], ["SubState"])[0].get("SubState") == "running"

    def _last_words(self, unit: str) -> str:
        said = self.run(
            ["journalctl", "--unit", unit, "--output", "cat", "--lines", str(LAST_WORDS), "--no-pager", "--quiet"]
        )[1]
        own = [line for line in said.splitlines() if not re.match(r"onprem-lb-\w+\.service: |(Start|Stopp|Fail)", line)]
        return " ".join(own or said.splitlines())

    def _must(self, command: List[str]) -> None:
        code, out, err = self.run(command)
        if code:
            raise Failed(f"{' '.join(command)} failed: {' '.join((err or out).split())} (exit code {code})")
