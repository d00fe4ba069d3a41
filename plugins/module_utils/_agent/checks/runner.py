# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs one check: what to run, how often, and when to report a result."""

from __future__ import annotations

from typing import Callable, Optional, Tuple

from ..runtime.loop import Loop
from . import rise_fall
from .dialogues import network_probe
from .files import File
from .outcome import Outcome, Probe
from .periodic import PeriodicProbe
from .processes import Process
from .scripts import Script
from .settings import FILE, PROCESS, SCRIPT, Check
from .subprocesses import Children

OnResult = Callable[[bool, int, str, bool], None]  # up, value, detail, known
OnRun = Callable[[Outcome], None]


class CheckRunner:
    """Reports the first state and each change of it; before that each run, if the check has ``every``."""

    def __init__(
        self,
        loop: Loop,
        check: Check,
        children: Children,
        on_result: OnResult,
        on_run: OnRun,
        up: Optional[bool] = None,
    ) -> None:
        self._on_result, self._on_run = on_result, on_run if check.every else None
        # The number in a file counts at once, as in keepalived: it was written on purpose.
        self._interval, self._fast_interval = check.interval, check.fast_interval
        self._rise, self._fall = (1, 1) if check.type == FILE else (check.rise, check.fall)
        self._state = rise_fall.UNKNOWN._replace(up=up)
        self._reported: Optional[Tuple[bool, int, bool]] = None
        self._urgent = False
        probe = probe_of(loop, check, children, self._run_until_certain)
        self._probe = PeriodicProbe(loop, check.interval, probe, self._count)
        self._probe.start()

    def stop(self) -> None:
        self._probe.stop()

    def suspect(self) -> None:
        """Check at once, because a connection to the target failed. That alone proves nothing: a packet may be lost.

        While outcomes contradict the state, the next run comes in its turn: or many failures would make it down sooner.
        """
        if self._state.up and self._state.certain:
            self._probe.run_now()

    def _run_until_certain(self) -> None:
        """Something has changed: run at once, and again until the state is certain."""
        self._urgent = True
        self._probe.run_now()

    def _count(self, outcome: Outcome) -> None:
        if self._on_run:
            self._on_run(outcome)
        self._state = rise_fall.count(self._state, outcome.success, self._rise, self._fall)
        is_fast = self._fast_interval and not self._state.certain
        # From the end of this run, as in HAProxy: else runs that time out would follow each other without a pause.
        self._probe.set_interval(self._fast_interval + outcome.duration if is_fast else self._interval)
        self._urgent = self._urgent and not self._state.certain
        if self._urgent:
            self._probe.run_now()
        state = bool(self._state.up), outcome.value, outcome.known
        if state != self._reported and self._state.certain:
            self._reported = state
            self._on_result(*state[:2], outcome.detail, outcome.known)


def probe_of(loop: Loop, check: Check, children: Children, run_now: Callable[[], None]) -> Probe:
    """Return the probe of a check. Raises ImportError for https if Python has no TLS."""
    if check.type == PROCESS:
        return Process(loop, check.process, run_now)
    if check.type == FILE:
        return File(loop, check.file, run_now)
    if check.type == SCRIPT:
        return Script(loop, children, check.command, check.user, check.timeout)
    return network_probe(loop, check)
