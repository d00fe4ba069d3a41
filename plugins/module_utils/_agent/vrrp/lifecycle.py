# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VRRP daemon's life on a host: from its start to SIGTERM, with reloads and new versions between."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any, Dict, List, Mapping, Optional

from .. import VERSION
from ..checks.client import Checks, Result
from ..checks.outcome import in_words
from ..config import file, host
from ..net.network import Network
from ..runtime import realtime, status_socket
from ..runtime.log import Log
from ..runtime.loop import Loop
from ..runtime.sd_notify import Notifier
from ..runtime.signals import Signals
from . import config, daemon, settings
from .upgrade import NewProcess, OldProcess, UpgradeAborted


class Lifecycle:
    """One run of the daemon."""

    def __init__(
        self,
        path: str,
        log: Log,
        notifier: Notifier,
        environ: Mapping[str, str],
        predecessor: Optional[OldProcess] = None,
    ) -> None:
        """
        :param environ: as this process was started with, for a new version of it
        """
        self.path, self.log, self.notifier, self._environ = path, log, notifier, environ
        self.since = time.time()
        self.limits: List[str] = []
        self.text = ""  # of the configuration that is in force
        self.refused: Optional[str] = None  # why the last reload, or the new version, changed nothing
        self.leaving = self.succeeded = False
        self.loop = Loop()
        self.network = Network()
        self.checks = Checks.start(self.loop, self._checked, log.warning)
        self.daemon = daemon.Daemon(daemon.Dependencies(self.loop, self.network, self.checks, log))
        self.door: Optional[status_socket.StatusServer] = None
        self._predecessor = predecessor
        self._successor: Optional[NewProcess] = None

    def run(self, wanted: settings.Settings) -> None:
        """Live until somebody says that it is enough. Raises Refused, or Gone, before anything is changed."""
        before = self._predecessor
        if before is None:
            self.door = status_socket.StatusServer(self.loop, wanted.status_socket, self.report)
        self._hear_signals()
        self.limits = realtime.prepare()
        for limit in self.limits:
            self.log.warning(limit)
        if before:
            self._succeed(before)
        try:
            if before is None:
                self._start(wanted)
            elif file.load(self.path)[0] != self.text:
                self._take_file()
            self.loop.run()
        finally:
            self.end()

    def _start(self, wanted: settings.Settings) -> None:
        self.text = file.load(self.path)[0]
        self.daemon.start(wanted)
        self.notifier.ready()
        self._feed_watchdog()

    def end(self) -> None:
        if not self.succeeded:
            self.notifier.stopping()
            self.daemon.stop()
        self.checks.stop()
        self.network.close()
        if self.door:
            self.door.close(stays=self.succeeded)
        self.log.info(f"The addresses are {'handed over' if self.succeeded else 'given up'}; goodbye.")
        if self._successor:
            self._pass_on(self._successor.pid)

    def _checked(self, result: Result) -> None:
        self.daemon.take_result(result)

    # -- the configuration

    def reload(self) -> None:
        """Go over to what the file says now; a file with a fault changes nothing."""
        if self.leaving:
            return
        renewing = self._give_up_successor()
        self.notifier.reloading()
        self._take_file()
        self.notifier.ready()  # also when it was refused: systemd waits for it
        if renewing:  # by what is not in force any more
            self.renew()

    def _take_file(self) -> None:
        text, faults = file.load(self.path)
        wanted, faults = (None, faults) if faults else config.parse(text, self.path, host)
        if wanted:
            faults = self._move_door(wanted.status_socket)
        self.refused = " ".join(faults) or None
        if self.refused or wanted is None:
            self.log.warning(f"The reload is refused, and nothing is changed: {self.refused}")
            return
        self.daemon.apply(wanted)
        self.text = text
        self.log.info(f"{self.path} is in force.")

    def _move_door(self, path: str) -> List[str]:
        """Answer at another socket; return why that cannot be, and then go on at the old one."""
        if self.door and self.door.path == path:
            return []
        try:
            new = status_socket.StatusServer(self.loop, path, self.report)
        except status_socket.Refused as refused:
            return [str(refused)]
        if self.door:
            self.door.close()
        self.door = new
        return []

    # -- a new version

    def renew(self) -> None:
        """Have the program that is now where this one came from take over, once it is ready to."""
        if self.leaving or self._successor or not self.door:
            return
        self.refused = None
        self.notifier.reloading()
        left = {"config": self.text, "door": [self.door.path, self.door.socket.fileno()]}
        try:
            self._successor = NewProcess(self.loop, self._environ, left, self._hand_over, self._keep_on)
        except OSError as fault:
            self._keep_on(f"it cannot be started: {in_words(fault)}")

    def _hand_over(self) -> None:
        """Say all that is known, and nothing to anybody else any more."""
        known = {"since": self.since, "daemon": self.daemon.remember()}
        if not (self._successor and self._successor.take_over(known)):
            self._keep_on("it does not go on from where this one is")
            return
        self.succeeded = True
        self.notifier.succeeded(self._successor.pid)
        self.loop.stop()

    def _pass_on(self, pid: int) -> None:
        """Who has told this process to end, or to do something else, has meant the one that is in its place now."""
        for number in self._signals.unheeded:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _keep_on(self, why: str) -> None:
        self._successor = None
        self.refused = f"The new version does not take over: {why}."
        self.log.warning(f"{self.refused} The old one goes on.")
        self.notifier.ready()

    def _give_up_successor(self) -> bool:
        """Return whether there was one."""
        successor, self._successor = self._successor, None
        if successor:
            successor.close()
        return successor is not None

    def _succeed(self, before: OldProcess) -> None:
        """Go on as the process that has started this one. Where it raises, that one goes on itself."""
        wanted, faults = config.parse(before.text, self.path)
        if wanted is None:
            raise status_socket.Refused(f"What is in force is not understood by this version: {' '.join(faults)}")
        self.text = before.text
        self.daemon.start(wanted, later=True)
        known = before.ask()
        self.since = known["since"]
        self.daemon.resume(known["daemon"])
        before.dismiss()
        self.door = status_socket.StatusServer(self.loop, before.door, self.report, before.door_socket)
        self.log.info(f"onprem.lb {VERSION} goes on from here.")
        if self.notifier.watchdog:  # the old one has just spoken for us, to whom systemd does not listen yet
            self.loop.after(self.notifier.watchdog, self._feed_watchdog)

    # -- the process

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
        wanted = {
            signal.SIGTERM: self._leave,
            signal.SIGINT: self._leave,
            signal.SIGHUP: self.reload,
            signal.SIGUSR2: self.renew,
        }
        self._signals = Signals(self.loop, wanted)

    def _leave(self) -> None:
        """Go as soon as others serve; when it is said twice, at once."""
        if self.leaving:
            self.loop.stop()
            return
        self.leaving = True
        self._give_up_successor()
        self.daemon.leave(self.loop.stop)

    def _feed_watchdog(self) -> None:
        if self.notifier.watchdog:
            self.notifier.alive()
            self.loop.after(self.notifier.watchdog, self._feed_watchdog)


def main(path: str, wanted: settings.Settings, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> int:
    """Run the daemon; return the exit code."""
    try:
        life = Lifecycle(path, log, notifier, environ, OldProcess.of(os.environ))
    except OSError as error:
        log.fault("start", f"The network cannot be had: {error.strerror}.")
        return 1
    try:
        life.run(wanted)
    except (status_socket.Refused, UpgradeAborted) as refused:
        log.fault("start", str(refused))
        return 1
    return 0
