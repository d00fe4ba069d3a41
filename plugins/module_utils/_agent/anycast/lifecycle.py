# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The health gate's lifecycle on a host: from its start to SIGTERM, with reloads between.

Only SIGTERM takes the VIPs away. They outlive a crash, a kill and a new version: the next process finds them.
"""

from __future__ import annotations

import signal
from typing import Any, Callable, Dict, List, Mapping

from .. import VERSION
from ..checks.checks_process import Result
from ..checks.client import Checks
from ..checks.outcome import in_words
from ..config.file import Found
from ..net.netlink import Netlink
from ..runtime import reporting, status_socket
from ..runtime.log import Log
from ..runtime.sd_notify import Notifier
from . import config
from .keeper import Dependencies, Keeper
from .settings import Settings


class Lifecycle(reporting.Lifecycle):
    """One run of the daemon."""

    version = VERSION

    def __init__(self, path: str, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> None:
        super().__init__(path, log, notifier, environ)
        self.kernel = Netlink()
        self.checks = Checks.start(self.loop, self._take_result, log.warning, daemon="gate")
        self.keeper = Keeper(Dependencies(self.loop, self.kernel, self.checks, log))

    def run(self, found: Found) -> None:
        """Run until it is stopped. Raises InUse before anything is changed."""
        try:
            self._open_status_socket(found.settings.status_socket)
            self._watch_signals()
            self.text = found.text
            self.keeper.start(found.settings)
            self._notify_ready()
            self._feed_watchdog()
            self.loop.run()
        finally:
            self._end()

    def _end(self) -> None:
        self.notifier.stopping()
        self.checks.stop()
        self.kernel.close()
        if self.status_socket:
            self.status_socket.close()

    def _take_result(self, result: Result) -> None:
        self.keeper.take_result(result)

    def stop(self) -> None:
        """Take the VIPs away, and end."""
        if self.stopping:
            return
        self.stopping = True
        self.keeper.give_up()
        left = self.keeper.held()
        if left:
            self.log.warning(f"{', '.join(left)} could not be removed, and may be announced: remove it by hand.")
        else:
            self.log.info("The addresses are given up; goodbye.")
        self.loop.stop()

    def upgrade(self) -> None:
        """End, and leave the VIPs: the service manager starts the version that is installed now, which finds them."""
        if not self.stopping:
            self.stopping = True
            self.log.info("The addresses stay, for the version that is installed now; goodbye.")
            self.loop.stop()

    def _handlers(self) -> Dict[signal.Signals, Callable[[], None]]:
        """Hear SIGUSR1 before SIGTERM: a restart is no stop."""
        return {signal.SIGUSR1: self.upgrade, **super()._handlers()}

    def report(self) -> Dict[str, Any]:
        return {**self.describe(), **self.keeper.report()}

    def _read(self) -> Found:
        return config.load(self.path)

    def _use(self, settings: Settings) -> List[str]:
        faults = self._move_status_socket(settings.status_socket)
        if not faults:
            self.keeper.apply(settings)
        return faults


def main(path: str, found: Found, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> int:
    """Run the daemon; return the exit code."""
    try:
        Lifecycle(path, log, notifier, environ).run(found)
    except status_socket.Refused as refused:
        log.fault("start", str(refused))
        return 1
    except OSError as error:
        log.fault("start", f"The health gate cannot be started: {in_words(error)}.")
        return 1
    return 0
