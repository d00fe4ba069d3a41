# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VRRP daemon's lifecycle on a host: from its start to SIGTERM, with reloads between."""

from __future__ import annotations

import signal
from typing import Any, Callable, Dict, List

from .. import VERSION
from ..checks.checks_process import Result
from ..checks.client import Checks
from ..config.file import Found
from ..net.network import Network
from ..runtime import realtime, reporting, status_socket
from ..runtime.log import Log
from ..runtime.sd_notify import Notifier
from . import config, daemon
from .settings import Settings


class Lifecycle(reporting.Lifecycle):
    """One run of the daemon."""

    version = VERSION

    def __init__(self, path: str, log: Log, notifier: Notifier) -> None:
        super().__init__(path, log, notifier, {})
        self._kept = False  # whether the addresses stay, for the next version
        self.network = Network()
        self.checks = Checks.start(self.loop, self._take_result, log.warning)
        self.daemon = daemon.Daemon(daemon.Dependencies(self.loop, self.network, self.checks, log))

    def run(self, found: Found) -> None:
        """Run until it is stopped. Raises InUse or Refused before anything is changed."""
        self._open_status_socket(found.settings.status_socket)
        self._watch_signals()
        for missing in realtime.prepare():
            self._lacks(missing)
        try:
            self._start(found)
            self.loop.run()
        finally:
            self.end()

    def _start(self, found: Found) -> None:
        self.text = found.text
        self.daemon.start(found.settings)
        self._notify_ready()
        self._feed_watchdog()

    def end(self) -> None:
        self.notifier.stopping()
        if not self._kept:
            self.daemon.stop()
            self.checks.stop()
        self.network.close()
        if self.status_socket:
            self.status_socket.close()
        self.log.info(self._farewell(self.daemon.held()))

    def _farewell(self, left: List[str]) -> str:
        if self._kept:
            return "The addresses stay, for the version that is installed now; goodbye."
        if left:
            return f"{', '.join(left)} could not be removed, and another host may have it by now: remove it by hand."
        return "The addresses are given up; goodbye."

    def _take_result(self, result: Result) -> None:
        self.daemon.take_result(result)

    def stop(self) -> None:
        """Stop as soon as other routers serve the addresses; when called twice, at once."""
        if self.stopping:
            self.loop.stop()
            return
        self.stopping = True
        self.daemon.resign(self.loop.stop)

    def _handlers(self) -> Dict[signal.Signals, Callable[[], None]]:
        """Hear SIGUSR1 before the SIGTERM of a restart. It ends a router of 1.0.0, too: that has no handler for it."""
        return {signal.SIGUSR1: self.upgrade, **super()._handlers()}

    def upgrade(self) -> None:
        """End, and leave the addresses: the service manager starts the version that is installed now, which finds them.

        The checks are not waited for: Backups wait for three intervals only.
        """
        if self.stopping:
            return
        self.stopping = self._kept = True
        self.daemon.advertise()
        self.loop.stop()

    def report(self) -> Dict[str, Any]:
        return {**self.describe(), **self.daemon.report()}

    # -- the configuration

    def _read(self) -> Found:
        return config.load(self.path)

    def _use(self, settings: Settings) -> List[str]:
        faults = self._move_status_socket(settings.status_socket)
        if not faults:
            self.daemon.apply(settings)
        return faults


def main(path: str, found: Found, log: Log, notifier: Notifier) -> int:
    """Run the daemon; return the exit code."""
    try:
        running = Lifecycle(path, log, notifier)
    except OSError as error:
        log.fault("start", f"The network cannot be had: {error.strerror}.")
        return 1
    try:
        running.run(found)
    except status_socket.Refused as refused:
        log.fault("start", str(refused))
        return 1
    return 0
