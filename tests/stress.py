# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the unit and netns tests on a machine that is busy and stalls, as root: no test may depend on its speed.

    make stress
    make stress SEED=7 ROUNDS=1

Busy loops compete for the processors. Meanwhile random groups of test processes are frozen for a while, as on a virtual
machine whose host is overloaded. A cgroup freezes them, not SIGSTOP, which some tests send themselves. The seed decides
how many processes are frozen, when, and for how long.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Iterator, List, NamedTuple

from suite.runner import signals_deferred

ROOT = Path(__file__).resolve().parents[1]
MARK = "ONPREM_LB_STRESS"  # in the environment of each test process
LOOPS = 4
ROUNDS = 3
GROUP = "stressed"  # of tests/suite


class Freeze(NamedTuple):
    """One freeze: after a pause a share of the processes stands still for a while, in seconds."""

    pause: float
    share: float
    lasts: float


def freezes(seed: int) -> Iterator[Freeze]:
    """Draw freezes without end. In one of five the whole machine seems to stall."""
    draw = random.Random(seed)
    while True:
        share = 1.0 if draw.random() < 0.2 else draw.uniform(0, 0.5)
        yield Freeze(draw.uniform(0.5, 6), share, draw.uniform(0.2, 3))


def marked(mark: str) -> List[int]:
    """Return the processes with this mark in their environment."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return sorted(found)


class Cgroup:
    """A cgroup (version 2) below this process's own, whose members can be frozen."""

    def __init__(self, name: str) -> None:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        mount = next((words[1] for words in mounts if words[2] == "cgroup2"), None)
        if mount is None:
            raise OSError("there is no cgroup2 file system")
        own = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        self.parent = Path(mount + own[len("0::") :])
        self.folder = self.parent / name
        self.folder.mkdir()

    def freeze(self, processes: List[int]) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                (self.folder / "cgroup.procs").write_text(str(process))
        (self.folder / "cgroup.freeze").write_text("1")

    def thaw(self) -> None:
        """Let all go on, where they were."""
        (self.folder / "cgroup.freeze").write_text("0")
        while members := (self.folder / "cgroup.procs").read_text().split():  # they may start others meanwhile
            for process in members:
                with contextlib.suppress(ProcessLookupError):
                    (self.parent / "cgroup.procs").write_text(process)

    def close(self) -> None:
        self.thaw()
        while True:  # a process that has ended leaves it a moment later
            with contextlib.suppress(OSError):
                return self.folder.rmdir()
            time.sleep(0.01)


class Freezer:
    """Freezes marked processes until it is closed."""

    def __init__(self, seed: int, mark: str) -> None:
        self.cgroup = Cgroup(f"onprem-lb-stress-{mark}")
        self.count = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(seed, mark))
        self._thread.start()

    def _run(self, seed: int, mark: str) -> None:
        draw = random.Random(seed)
        for freeze in freezes(seed):
            if self._closing.wait(freeze.pause):
                return
            processes = marked(mark)
            self.cgroup.freeze(draw.sample(processes, round(freeze.share * len(processes))))
            self.count += 1
            self._closing.wait(freeze.lasts)
            self.cgroup.thaw()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        self.cgroup.close()


@contextlib.contextmanager
def load() -> Iterator[None]:
    loops: List[subprocess.Popen] = []
    try:
        with signals_deferred():
            loops += [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _each in range(LOOPS)]
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(seed: int, command: List[str]) -> int:
    """Run a command on a busy machine that stalls; return its exit code."""
    mark = uuid.uuid4().hex[:12]
    start = functools.partial(subprocess.Popen, command, cwd=ROOT, env={**os.environ, MARK: mark})
    with load(), contextlib.closing(Freezer(seed, mark)) as freezer, contextlib.ExitStack() as ending:
        with signals_deferred():
            tests = ending.enter_context(start())
            ending.callback(tests.terminate)  # after a signal: it ends its stages, and they clean up
        code = tests.wait()
    print(f"seed {seed}: exit code {code}, {freezer.count} freezes", flush=True)
    return code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="of the first round; a new one by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("make stress freezes processes, which only root can: run it as root.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    first = int(time.time()) if chosen.seed is None else chosen.seed
    command = [sys.executable, str(ROOT / "tests" / "suite"), GROUP]
    return next((code for seed in range(first, first + chosen.rounds) if (code := run(seed, command))), 0)


if __name__ == "__main__":
    sys.exit(main())
