# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The static pods of this collection on this host: which of them run, and by which manifest.

Their processes are the host's as well: the environment of each names its pod, and /proc has the files of its container.
So nothing is asked of the kubelet, or of a container runtime.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from typing import Dict, Iterable, List, NamedTuple

from ..._shared import pods
from ..._shared.pods import CHECKSUM, manifest_of, stopped
from . import processes

ANNOTATION = re.compile(rf"^ *{re.escape(CHECKSUM)}: (\S+)$", re.MULTILINE)
PAUSE = 0.2  # seconds between two looks


class First(NamedTuple):
    """The first process of the container with the program of a pod."""

    pid: int
    configuration: str  # the annotation of the manifest that it was started by
    fifo: str  # which it holds, in its container

    def path(self, inside: str) -> str:
        """Return where a file of its container is for this host."""
        return f"/proc/{self.pid}/root{inside}"

    @property
    def record(self) -> str:
        """Where the record is of what its program has loaded."""
        return self.path(f"{self.fifo}{pods.LOADED}")


def running(root: str = "/proc") -> Dict[str, First]:
    """Return the first process of each pod that runs, by the name of the pod."""
    here = processes.network(root, os.getpid())
    found: Dict[str, First] = {}
    for pid in processes.pids(root):
        words = processes.command(root, pid).split("\0")
        is_first = tuple(words[:2]) == pods.FIRST and words[3:4] == [pods.HOLDER]
        is_here = is_first and processes.network(root, pid) == here  # a host may have others, which are containers
        if is_here and not processes.is_copy(pid, root):
            environment = processes.environment(root, pid)
            name = environment.get(pods.POD, "")
            found[name] = First(pid, environment.get(pods.CONFIGURATION, ""), words[4])
    return found


def own(names: Iterable[str]) -> List[str]:
    """Return those that were set up here, whether they are to run or not."""
    return [name for name in names if os.path.exists(manifest_of(name)) or os.path.exists(stopped(name))]


def enabled(names: Iterable[str]) -> List[str]:
    """Return those that are to run."""
    return [name for name in names if os.path.exists(manifest_of(name))]


def wanted(name: str) -> str:
    """Return the annotation of a pod's manifest; '' if there is no manifest."""
    found = ANNOTATION.search(_text(manifest_of(name)))
    return found.group(1) if found else ""


def manifest(name: str) -> str:
    """Return the manifest of a pod that was set up here, whether it is to run or not; '' if there is none."""
    return _text(manifest_of(name)) or _text(stopped(name))


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def stop(names: Iterable[str]) -> None:
    """Set the manifests of pods aside, so that the kubelet ends them."""
    for name in enabled(names):
        os.rename(manifest_of(name), stopped(name))


def remove(names: Iterable[str]) -> None:
    """Delete the manifests of pods, so that the kubelet ends them."""
    for path in [path for name in names for path in (manifest_of(name), stopped(name)) if os.path.exists(path)]:
        os.unlink(path)


def reload(name: str) -> None:
    """Have a pod that runs load its configuration."""
    first = running().get(name)
    if first:
        with contextlib.suppress(ProcessLookupError):
            os.kill(first.pid, signal.SIGHUP)


def still_running(names: Iterable[str], limit: float) -> List[str]:
    """Wait until pods have ended; return those that still run when the time is over."""
    every, end = [*names], time.monotonic() + limit
    while True:
        left = [name for name in every if name in running()]
        if not left or time.monotonic() > end:
            return left
        time.sleep(PAUSE)
