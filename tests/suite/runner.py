# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs stages, some of them at a time, and reports progress.

A stage waits for the stages that it comes `after`. It is skipped unless those that it `needs` have succeeded. A stage
that measures time runs `alone`. The output of a stage goes into a log; if it fails, the last lines are printed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator, List, Mapping, Optional, Tuple

from .passed import Passed
from .results import Result, Row, read_junit, read_molecule, with_exit_code

LIMIT_S = 5400  # for a stage that sets no other; CI gives the whole run no more
PROGRESS_EVERY_S = 60
POLL_S = 0.2
LAST_LINES = 40


@dataclass(frozen=True)
class Stage:
    """One program to run.

    :ivar counts: where its results are: in `junit` files in its folder, in `molecule`'s log, or in its `exit` code; a
        stage that `prepares` others counts only if it fails
    """

    name: str
    command: Tuple[str, ...]
    counts: str = "exit"
    needs: Tuple[str, ...] = ()
    after: Tuple[str, ...] = ()
    alone: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = LIMIT_S
    missing: str = ""  # why it cannot run on this machine

    def folder(self, logs: Path) -> Path:
        return logs / self.name.replace(":", "-")


@dataclass
class Running:
    """A stage that runs."""

    stage: Stage
    process: subprocess.Popen[bytes]
    since: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class Runner:
    """Runs each stage once, as soon as it may start, but for those that have passed."""

    def __init__(
        self,
        stages: List[Stage],
        logs: Path,
        say: Callable[[str], None],
        passed: Optional[Passed] = None,
        at_once: int = 2,
    ) -> None:
        self.logs, self.say, self.passed, self.at_once = logs, say, passed, at_once
        self.named = {stage.name for stage in stages}
        self.rows = {row.name: row for row in passed.rows() if row.name in self.named} if passed else {}
        self.waiting = [stage for stage in stages if stage.name not in self.rows]
        self.running: List[Running] = []
        self.begin = self.reported = time.monotonic()

    def run(self) -> List[Row]:
        """Return a row for each stage, in the order in which they ended."""
        if self.rows:
            self._line(f"passed before, on this commit: {', '.join(self.rows)}")
        try:
            while self.waiting or self.running:
                self._start_ready_stages()
                self._collect()
                self._report_progress()
                time.sleep(POLL_S)
        finally:
            for one in self.running:
                _end(one.process)
        return list(self.rows.values())

    def _start_ready_stages(self) -> None:
        for stage in list(self.waiting):
            reason = stage.missing or self._failed_need(stage)
            if reason:
                self.waiting.remove(stage)
                self._finish(stage, Result(skips=(reason,)), 0, 0)
            elif self._may_start(stage):
                self.waiting.remove(stage)
                self._start(stage)

    def _failed_need(self, stage: Stage) -> str:
        bad = [name for name in stage.needs if name in self.rows and not self._succeeded(name)]
        return f"{bad[0]} did not succeed" if bad else ""

    def _succeeded(self, name: str) -> bool:
        result = self.rows[name].result
        return not result.failures and not result.skips

    def _may_start(self, stage: Stage) -> bool:
        pending = [name for name in (*stage.needs, *stage.after) if name in self.named and name not in self.rows]
        full = len(self.running) >= self.at_once or any(one.stage.alone for one in self.running)
        return not pending and not full and not (stage.alone and self.running)

    def _start(self, stage: Stage) -> None:
        folder = stage.folder(self.logs)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._line(f"{stage.name} ...")
        with open(folder / "log", "wb") as log, signals_deferred():
            process = subprocess.Popen(
                stage.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **stage.environment},
                start_new_session=True,
            )
            self.running.append(Running(stage, process, time.monotonic()))

    def _collect(self) -> None:
        for one in list(self.running):
            before = cpu_of_ended_s()
            code = one.process.poll()
            if code is None and one.seconds > one.stage.limit_s:
                _end(one.process)
                code = one.process.returncode
            if code is not None:
                self.running.remove(one)
                self._finish(one.stage, self._read(one.stage, code), one.seconds, cpu_of_ended_s() - before)

    def _read(self, stage: Stage, code: int) -> Result:
        folder = stage.folder(self.logs)
        if stage.counts == "junit":
            return with_exit_code(read_junit(sorted(folder.glob("*.xml"))), code)
        if stage.counts == "molecule":
            log = (folder / "log").read_text(errors="replace")
            return with_exit_code(read_molecule(log) + read_junit(sorted(folder.glob("*.xml"))), code)
        if stage.counts == "prepares" and code == 0:
            return Result()
        return Result(failures=(f"exit code {code}",)) if code else Result(passed=1)

    def _finish(self, stage: Stage, result: Result, seconds: float, cpu_s: float) -> None:
        self.rows[stage.name] = Row(stage.name, result, seconds, cpu_s)
        if self.passed:
            self.passed.add(self.rows[stage.name])
        counts = f"{result.passed} passed, {len(result.failures)} failed, {len(result.skips)} skipped"
        self._line(f"{stage.name}: {counts} in {seconds:.0f} s")
        if result.failures:
            self._show(stage, result)

    def _show(self, stage: Stage, result: Result) -> None:
        for failure in result.failures[:LAST_LINES]:
            self.say(f"    {failure}")
        log = stage.folder(self.logs) / "log"
        self.say(f"    the last lines of {log}:")
        for line in log.read_text(errors="replace").splitlines()[-LAST_LINES:]:
            self.say(f"    | {line[:400]}")

    def _report_progress(self) -> None:
        if time.monotonic() - self.reported > PROGRESS_EVERY_S:
            self._line("running: " + ", ".join(f"{one.stage.name} ({one.seconds:.0f} s)" for one in self.running))

    def _line(self, text: str) -> None:
        self.reported = time.monotonic()
        minutes, seconds = divmod(int(self.reported - self.begin), 60)
        self.say(f"[{minutes:3d}:{seconds:02d}] {text}")


def cpu_of_ended_s() -> float:
    """Return the processor time of the stages that have ended, with all that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Defer signals, so that none ends this program after it has started a process and before it has recorded it."""
    deferred: List[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda one, _frame: deferred.append(one)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for one in deferred:
        signal.raise_signal(one)


def _end(process: subprocess.Popen[bytes], grace_s: float = 60) -> None:
    """End a stage with all processes that it started. SIGINT comes first, so that its tests can clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            _signal_group(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return
    except PermissionError:  # it runs through sudo
        subprocess.run(["sudo", "--non-interactive", "kill", f"-{int(number)}", "--", f"-{pid}"], check=False)
