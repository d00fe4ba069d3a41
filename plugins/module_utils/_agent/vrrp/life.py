# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VRRP daemon's life on a host: from its start to SIGTERM, with a reload at each SIGHUP."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, List, Optional

from .. import VERSION, config, realtime, status
from ..checks.client import Checks, Result
from ..log import Log
from ..loop import Loop
from ..net.network import Network
from ..signals import Signals
from ..systemd import Notifier
from . import daemon, settings


class Life:
    """One run of the daemon."""

    def __init__(self, path: str, log: Log, notifier: Notifier) -> None:
        self.path, self.log, self.notifier = path, log, notifier
        self.since = time.time()
        self.limits: List[str] = []
        self.refused: Optional[str] = None  # why the last reload changed nothing
        self.leaving = False
        self.loop = Loop()
        self.network = Network()
        self.checks = Checks.start(self.loop, self._checked, log.warning)
        self.daemon = daemon.Daemon(daemon.Surroundings(self.loop, self.network, self.checks, log))
        self.door: Optional[status.Server] = None

    def run(self, wanted: settings.Settings) -> None:
        """Live until somebody says that it is enough."""
        self.door = status.Server(self.loop, wanted.status_socket, self.report)
        self._hear_signals()
        self.limits = realtime.prepare()
        for limit in self.limits:
            self.log.warning(limit)
        try:
            self.daemon.start(wanted)
            self.notifier.ready()
            self._feed_watchdog()
            self.loop.run()
        finally:
            self.end()

    def end(self) -> None:
        self.notifier.stopping()
        self.daemon.stop()
        self.checks.stop()
        self.network.close()
        if self.door:
            self.door.close()
        self.log.info("The addresses are given up; goodbye.")

    def _checked(self, result: Result) -> None:
        self.daemon.take_result(result)

    def reload(self) -> None:
        """Go over to what the file says now; a file with a fault changes nothing."""
        if self.leaving:
            return
        self.notifier.reloading()
        self._renew()
        self.notifier.ready()  # also when it was refused: systemd waits for it

    def _renew(self) -> None:
        wanted, faults = config.load(self.path)
        if wanted:
            faults = self._move_door(wanted.status_socket)
        self.refused = " ".join(faults) or None
        if self.refused or wanted is None:
            self.log.warning(f"The reload is refused, and nothing is changed: {self.refused}")
            return
        self.daemon.apply(wanted)
        self.log.info(f"{self.path} is in force.")

    def _move_door(self, path: str) -> List[str]:
        """Answer at another socket; return why that cannot be, and then go on at the old one."""
        if self.door and self.door.path == path:
            return []
        try:
            new = status.Server(self.loop, path, self.report)
        except status.Refused as refused:
            return [str(refused)]
        if self.door:
            self.door.close()
        self.door = new
        return []

    def report(self) -> Dict[str, Any]:
        return {
            "agent": "onprem.lb",
            "version": VERSION,
            "pid": os.getpid(),
            "since": self.since,
            "config": self.path,
            "config_fault": self.refused,
            "limits": self.limits,
            **self.daemon.report(),
        }

    def _hear_signals(self) -> None:
        wanted = {signal.SIGTERM: self._leave, signal.SIGINT: self._leave, signal.SIGHUP: self.reload}
        self._signals = Signals(self.loop, wanted)

    def _leave(self) -> None:
        """Go as soon as others serve; when it is said twice, at once."""
        if self.leaving:
            self.loop.stop()
            return
        self.leaving = True
        self.daemon.leave(self.loop.stop)

    def _feed_watchdog(self) -> None:
        if self.notifier.watchdog:
            self.notifier.alive()
            self.loop.after(self.notifier.watchdog, self._feed_watchdog)


def main(path: str, wanted: settings.Settings, log: Log, notifier: Notifier) -> int:
    """Run the daemon; return the exit code."""
    try:
        life = Life(path, log, notifier)
    except OSError as error:
        log.fault("start", f"The network cannot be had: {error.strerror}.")
        return 1
    try:
        life.run(wanted)
    except status.Refused as refused:
        log.fault("start", str(refused))
        return 1
    return 0
