# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a kubelet whose containers are processes of the test, in folders of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, pod_programs, pods, processes
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import held
from ansible_collections.onprem.lb.plugins.module_utils._shared import pods as shared

from support import waiting

BALANCER, ROUTER = shared.BALANCER, shared.ROUTER
CONFIGURATION = "0123abcd"
SLEEPS = "while :; do sleep 0.05; done"


def _default_signals() -> None:
    """A shell cannot trap what it is told to ignore; a container engine does not tell it so."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Kubelet:
    """The manifests of a host, and the processes of its pods."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        self.folder = folder
        self._configs: Dict[str, Path] = {}
        self._processes: Dict[str, subprocess.Popen] = {}
        (folder / "manifests").mkdir()
        monkeypatch.setattr(pods, "manifest_of", lambda name: str(self.manifest(name)))
        monkeypatch.setattr(pods, "stopped", lambda name: str(folder / "manifests" / f".{name}.yaml"))
        # Other tests may have pods, too.
        monkeypatch.setattr(processes, "pids", lambda _root: self._pids())
        monkeypatch.setattr(pod_programs, "RESOURCES", str(folder / "resources"))

    def __enter__(self) -> Kubelet:
        return self

    def __exit__(self, *_exception: object) -> None:
        for name in list(self._processes):
            self.ends(name)

    def _pids(self) -> List[int]:
        """Return the processes of its containers: of each the first one, and what that has started."""
        stats = facts.process_stats()
        firsts = [each.pid for each in self._processes.values()]
        return sorted(pid for first in firsts for pid in (first, *facts.children(first, stats)))

    def manifest(self, name: str) -> Path:
        return self.folder / "manifests" / f"{name}.yaml"

    def config(self, name: str) -> Path:
        return self._configs[name]

    def record(self, name: str) -> str:
        """Return what the pod says that it has loaded."""
        return (self.folder / name / "fifo.loaded").read_text()

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def writes(self, name: str, configuration: str = CONFIGURATION, file: str = "") -> None:
        """Write a manifest, as far as `pods` reads it: its program loads a file."""
        text = f"metadata:\n  annotations:\n    {shared.CHECKSUM}: {configuration}\n  command: [/etc/{file}]\n"
        self.manifest(name).write_text(text)

    def starts(self, name: str, file: str, script: str = f"trap : HUP; {SLEEPS}") -> None:
        """Write a manifest, and start its pod: a shell that loads a file as a program with this file does."""
        self.writes(name, file=file)
        config = Path(pod_programs.config_of(pod_programs.program_of(file)))
        config.parent.mkdir(parents=True)
        config.write_text("of before")
        self._configs[name] = config
        fifo, trapped = self.folder / name / "fifo", self.folder / "trapped"
        program = ["/bin/sh", "-c", script.replace("; while", f"; touch {trapped}; while", 1)]
        environment = {**os.environ, shared.POD: name, shared.CONFIGURATION: CONFIGURATION}
        command = held.command(program, str(fifo), str(config))
        self._processes[name] = subprocess.Popen(command, env=environment, preexec_fn=_default_signals)
        waiting.until(lambda: self.is_trapped() and self._is_reloadable(name))

    def is_trapped(self) -> bool:
        """Whether the program is ready for signals."""
        return (self.folder / "trapped").exists()

    def _is_reloadable(self, name: str) -> bool:
        """Whether the first process catches SIGHUP, which it does last: SIGTERM would end it alone before."""
        status = Path(f"/proc/{self.pid(name)}/status").read_text()
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        return bool(int(caught, 16) >> (signal.SIGHUP - 1) & 1)

    def ends(self, name: str) -> None:
        process = self._processes.pop(name)
        process.terminate()
        process.wait(10)
