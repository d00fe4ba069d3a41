"""Memory and processor time of the idle daemons: the agent compared with keepalived."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from stage import AGENT, KINDS, OWNER, SECOND, Stage, instance
from tables import heading, row

IDLE_SECONDS = float(os.environ.get("IDLE_SECONDS", "20"))
INTERVAL = 1
MANY = 255
SETTLING_TIME = 3  # seconds, in which each router sends and receives every advertisement at least once
CORE_AIMS = {1: "0.5 %", MANY: "10 %"}


def measure() -> None:
    for count in (1, MANY):
        with contextlib.ExitStack() as stack:
            pairs = [settled_pair(stack.enter_context(Stage()), kind, count) for kind in KINDS]
            time.sleep(SETTLING_TIME)
            show_memory(count, pairs)
            show_processor_time(count, pairs)


def settled_pair(stage: Stage, kind: str, count: int):
    """Start an Active router and a Backup of a kind, each with a number of instances."""
    daemons = [
        stage.router(kind, node, [instance(number, INTERVAL, priority) for number in range(1, count + 1)])
        for node, priority in zip(stage.link.members, (OWNER, SECOND))
    ]
    for daemon in daemons:
        daemon.start()
        # Wait for each instance of the Active router, so that the Backup remains Backup.
        stage.await_advertisements("lb1", count, INTERVAL)
    return daemons


def show_memory(count: int, pairs) -> None:
    heading(f"megabytes, {instances(count)} as Active router")
    for place, what in enumerate(("VRRP process", "the other process: checks, supervisor")):
        for kind in ("Rss", "Pss"):
            values = [megabytes(processes(active)[place], kind) for active, _backup in pairs]
            row(f"{what}, {kind.upper()}", *values, "25" if (place, kind) == (0, "Rss") else "")


def show_processor_time(count: int, pairs) -> None:
    heading(f"% of a core, {instances(count)}, adverts every {INTERVAL} s")
    before = [[processor_time(daemon) for daemon in pair] for pair in pairs]
    began = time.monotonic()
    time.sleep(IDLE_SECONDS)
    passed = time.monotonic() - began
    used = [
        [(processor_time(daemon) - start) / passed * 100 for daemon, start in zip(pair, starts)]
        for pair, starts in zip(pairs, before)
    ]
    for role, values in zip(("Active", "Backup"), zip(*used)):
        row(f"{role}, both processes", *values, CORE_AIMS[count], "{:.3f}")


def instances(count: int) -> str:
    return f"{count} instance{'s' if count > 1 else ''}"


def processes(daemon):
    """Return the ids of the VRRP process (the agent's parent, keepalived's child) and of the other one."""
    pid = daemon.process.pid
    (child,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return (pid, child) if daemon.kind == AGENT else (child, pid)


def megabytes(pid: int, kind: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{kind}:"))


def processor_time(daemon) -> float:
    """Return the processor time of both processes in seconds. Each has one thread."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in processes(daemon)) / 1e9
