# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's life on a host: from its start to the end of its last session, with reloads and new versions between."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, List, Mapping, Optional

from ... import VERSION
from ...checks.client import Checks
from ...checks.outcome import in_words
from ...runtime import upgrade_state
from ...runtime.log import Log
from ...runtime.loop import MILLION, Loop
from ...runtime.sd_notify import Notifier
from ...runtime.signals import Signals
from .. import config
from ..settings import Settings
from . import privileges, upgrade
from .listeners import Refused
from .master import Master, Prepared

CHECKS_NAME = "proxy-checks"

# Descriptors of a worker, besides two for each session: of its own, and of pipes that it keeps.
OWN = 256
WITH_PIPES = 6  # of a session of which much is spliced both ways

LOOK, LAST_ANSWERS = MILLION // 200, MILLION // 2  # at those who still ask, and until they are not waited for


class Lifecycle:
    """One run of the proxy. It is slow to change and never waits for anybody but the kernel."""

    def __init__(self, path: str, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> None:
        """
        :param environ: as this process was started with, for a new version of it
        """
        self.path, self.log, self.notifier, self._environ = path, log, notifier, environ
        self.since = time.time()
        self.limits: List[str] = []
        self.refused: Optional[str] = None  # why the last reload changed nothing
        self.loop = Loop()
        self.master = Master(self.loop, log, self.describe, self.loop.stop)
        self._trial: Optional[upgrade.ConfigTest] = None

    def run(self, wanted: Settings) -> None:
        """Live until the last worker has ended. Raises Refused before anything is served."""
        inherited = upgrade_state.load(os.environ)
        if inherited:
            self.since = inherited["since"]
            self.master.inherit(inherited)
            upgrade_state.reap(self.loop, inherited["checks"])
        prepared = self.master.prepare(wanted)
        self.limits = self._raise_nofile(prepared.settings)
        for limit in self.limits:
            self.log.warning(f"Not to be had: {limit}.")
        self.checks = Checks.start(
            self.loop, self.master.take_result, self.log.warning, self.master.take_run, CHECKS_NAME
        )
        self._hear_signals()
        try:
            self._serve(prepared, inherited)
            self.loop.run()
        finally:
            self.master.close()
            self.checks.stop()
        self.log.info("The proxy has ended.")

    def _serve(self, prepared: Prepared, inherited: Optional[Dict[str, Any]]) -> None:
        try:
            self.master.start(self.checks, prepared, inherited)
        except OSError as fault:
            raise Refused([f"no worker can be started: {in_words(fault)}."]) from fault
        self._be_ready()
        self._feed_watchdog()
        self.log.info(f"onprem.lb {VERSION} serves by {self.path}.")

    def describe(self) -> Dict[str, Any]:
        """Return what there is to say of this process."""
        return {
            "agent": "onprem.lb",
            "version": VERSION,
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "since": self.since,
            "config": self.path,
            "config_fault": self.refused,
            "limits": self.limits,
        }

    def _raise_nofile(self, wanted: Settings) -> List[str]:
        """Raise the limit of open files as far as the sessions need it; return a sentence if it stays too low."""
        sessions = wanted.maxconn // wanted.workers
        missing = privileges.raise_nofile(2 * sessions + OWN, WITH_PIPES * sessions + OWN)
        return [missing] if missing else []

    # -- the configuration

    def reload(self) -> None:
        """Go over to what the file says now; a file with a fault changes nothing."""
        if not self.master.stopping:
            self.notifier.reloading()
            self._take_file()
            self._be_ready()  # also when it was refused: systemd waits for it

    def _take_file(self) -> bool:
        """Return whether what the file says is in force."""
        wanted, faults = config.load(self.path)
        if wanted:
            faults = self._go_over(wanted)
        self.refused = " ".join(faults) or None
        if self.refused:
            self.log.warning(f"The reload is refused, and nothing is changed: {self.refused}")
        else:
            self.log.info(f"{self.path} is in force.")
        return not self.refused

    def _go_over(self, wanted: Settings) -> List[str]:
        """Go over to other settings; return why that cannot be, and then nothing is changed."""
        try:
            prepared = self.master.prepare(wanted)
        except Refused as refused:
            return refused.reasons
        try:
            self.master.go_over(prepared)
        except OSError as fault:
            self.master.discard(prepared)
            return [f"no worker can be started: {in_words(fault)}."]
        return []

    # -- a new version

    def renew(self) -> None:
        """Become the program that is now where this one came from, once that has taken the configuration."""
        if self.master.stopping or self._trial:
            return
        try:
            self._trial = upgrade.ConfigTest(self.loop, self.path, self._tried)
        except (OSError, ValueError) as fault:
            self.log.warning(f"A new version cannot be tried: {in_words(fault)}.")

    def _tried(self, wrong: Optional[str]) -> None:
        if wrong:
            self.log.warning(f"The new version is refused, and the old one goes on: {wrong}.")
        elif not self.master.stopping and self._take_file():  # so that all is open that the new one will want
            self.master.rest()
            self._become_new(self.loop.now() + LAST_ANSWERS)
            return
        self._trial = None

    def _become_new(self, late: int) -> None:
        """Do it as soon as nobody waits for an answer of the old one any more, or at a moment."""
        if self.master.stopping:
            self.master.go_on()
            return
        if self.master.asked and self.loop.now() < late:
            self.loop.after(LOOK, lambda: self._become_new(late))
            return
        self.notifier.reloading()
        known = {**self.master.remember(), "since": self.since, "checks": self.checks.pid}
        try:
            upgrade.become(known, self._environ)
        except OSError as fault:
            self.log.warning(f"The new version cannot be started: {in_words(fault)}.")
            self._trial = None
            self.master.go_on()
            self._be_ready()

    # -- the process

    def leave(self) -> None:
        """Take nobody new, let the others finish, and end; when it is said twice, at once."""
        if self.master.stopping:
            self.master.leave(0)
            return
        self.notifier.stopping()
        patience = min(self.master.settings.hard_stop_after, self.master.settings.stop_within)
        sessions = self.master.leave(patience)
        self.log.info(f"Stopping: {sessions} sessions may finish within {patience // MILLION} s.")

    def _hear_signals(self) -> None:
        wanted = {
            signal.SIGTERM: self.leave,
            signal.SIGINT: self.leave,
            signal.SIGUSR2: self.renew,
            signal.SIGHUP: self.reload,
        }
        self._signals = Signals(self.loop, wanted)

    def _be_ready(self) -> None:
        settings = self.master.settings
        self.notifier.status(f"{len(settings.services)} services, {settings.workers} workers")
        self.notifier.ready()

    def _feed_watchdog(self) -> None:
        if self.notifier.watchdog:
            self.notifier.alive()
            self.loop.after(self.notifier.watchdog, self._feed_watchdog)


def main(path: str, wanted: Settings, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> int:
    """Run the proxy; return the exit code."""
    try:
        Lifecycle(path, log, notifier, environ).run(wanted)
    except Refused as refused:
        for reason in refused.reasons:
            log.fault(reason, reason)
        return 1
    return 0
