# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the processes of a host from /proc: their names, and the unit, container or pod that each runs in."""

from __future__ import annotations

import glob
import os
from typing import Collection, Dict, Iterator, List, NamedTuple, Set

from ..._shared import pods
from . import cgroups


class Process(NamedTuple):
    """One process; those of one program in one unit, container or pod count as one."""

    program: str
    pid: int
    runs_in: cgroups.RunsIn
    on_this_network: bool = True  # whether it is in the host's own network namespace
    environment: Dict[str, str] = {}

    def __str__(self) -> str:
        where = f" in {self.runs_in}" if self.runs_in.kind else ""
        return f"{self.program} runs{where} (pid {self.pid})"

    @property
    def mend(self) -> str:
        """How to stop it for good."""
        kind, name = self.runs_in.kind, self.runs_in.name
        if kind == cgroups.STATIC_POD:
            return "take its manifest out of the kubelet's folder, such as /etc/kubernetes/manifests"
        if kind == cgroups.POD:
            return "take its workload off this node"
        if kind == cgroups.CONTAINER:
            return "stop that container, and keep it from starting again"
        return f"run `systemctl disable --now {name}`" if name.endswith(".service") else f"run `kill {self.pid}`"


def runs_in(pid: int, root: str = "/proc") -> cgroups.RunsIn:
    """Return what a process runs in; nothing if it has ended meanwhile."""
    found = cgroups.runs_in(text(root, pid, "cgroup"), text(root, 1, "cgroup"))
    own = environment(root, pid).get(pods.POD) if found.kind in cgroups.CONTAINERS else None
    return cgroups.RunsIn(cgroups.OWN_POD, own) if own else found


def named(programs: Collection[str], root: str = "/proc") -> List[Process]:
    """Return the processes of some programs, the oldest one of each unit, container or pod."""
    found: Dict[object, Process] = {}
    for pid in pids(root):
        program = text(root, pid, "comm").strip()
        if program in programs:
            where, is_here = runs_in(pid, root), network(root, pid) == network(root, 1)
            found.setdefault((program, where), Process(program, pid, where, is_here, environment(root, pid)))
    return list(found.values())


def users(unit: str, root: str = "/proc") -> Set[int]:
    """Return the users as which the processes of a unit run."""
    own = [pid for pid in pids(root) if runs_in(pid, root).name == unit]
    found = [line.split() for pid in own for line in text(root, pid, "status").splitlines() if line.startswith("Uid:")]
    return {int(words[2]) for words in found}  # the effective one


def pids(root: str) -> Iterator[int]:
    yield from sorted(int(os.path.basename(path)) for path in glob.glob(os.path.join(root, "[0-9]*")))


def is_copy(pid: int, root: str = "/proc") -> bool:
    """Whether a process has the command line of its parent: a shell that has forked, and has become no program yet.

    It has the environment and the files of the parent as well, and knows none of its traps: a signal ends it.
    """
    return command(root, pid) == command(root, parent(root, pid))


def command(root: str, pid: int) -> str:
    return text(root, pid, "cmdline")


def parent(root: str, pid: int) -> int:
    """Return the process that has started another one, 0 if that has ended meanwhile."""
    fields = text(root, pid, "stat").rpartition(")")[2].split()  # the name before it may contain anything, proc(5)
    return int(fields[1]) if fields else 0


def network(root: str, pid: int) -> str:
    """Return the network namespace of a process, '' if it has ended meanwhile."""
    try:
        return os.readlink(os.path.join(root, str(pid), "ns", "net"))
    except OSError:
        return ""


def environment(root: str, pid: int) -> Dict[str, str]:
    pairs = (entry.partition("=") for entry in text(root, pid, "environ").split("\0"))
    return {name: value for name, _equals, value in pairs if name}


def text(root: str, pid: int, name: str) -> str:
    try:
        with open(os.path.join(root, str(pid), name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
