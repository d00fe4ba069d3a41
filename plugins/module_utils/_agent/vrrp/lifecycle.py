# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VRRP daemon's lifecycle on a host: from its start to SIGTERM, with reloads and upgrades between."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, List, Mapping, Optional

from .. import VERSION
from ..checks.client import Checks, Result
from ..checks.outcome import in_words
from ..config import file, host
from ..net.network import Network
from ..runtime import lifecycle, realtime, status_socket
from ..runtime.log import Log
from ..runtime.sd_notify import Notifier
from . import config, daemon
from .settings import Settings
from .upgrade import NewProcess, OldProcess, UpgradeAborted

NO_STATUS = "status reports"  # what there is not without a status socket


class Lifecycle(lifecycle.Lifecycle):
    """One run of the daemon."""

    version = VERSION

    def __init__(
        self,
        path: str,
        log: Log,
        notifier: Notifier,
        environ: Mapping[str, str],
        old_process: Optional[OldProcess] = None,
    ) -> None:
        super().__init__(path, log, notifier, environ)
        self.handed_over = False
        self.network = Network()
        self.checks = Checks.start(self.loop, self._take_result, log.warning)
        self.daemon = daemon.Daemon(daemon.Dependencies(self.loop, self.network, self.checks, log))
        self.status_socket: Optional[status_socket.StatusServer] = None
        self._old_process = old_process
        self._new_process: Optional[NewProcess] = None

    def run(self, settings: Settings) -> None:
        """Run until it is stopped. Raises InUse, Refused or UpgradeAborted before anything is changed."""
        before = self._old_process
        if before is None:
            self._open_status_socket(settings.status_socket)
        self._watch_signals()
        for missing in realtime.prepare():
            self._lacks(missing)
        if before:
            self._take_over(before)
        try:
            if before is None:
                self._start(settings)
            elif file.load(self.path)[0] != self.text:
                self._apply_file()
            self.loop.run()
        finally:
            self.end()

    def _lacks(self, missing: str) -> None:
        self.missing_privileges.append(missing)
        self.log.warning(missing)

    def _start(self, settings: Settings) -> None:
        self.text = file.load(self.path)[0]
        self.daemon.start(settings)
        self._notify_ready()
        self._feed_watchdog()

    def end(self) -> None:
        farewell = "The addresses are handed over; goodbye."
        if not self.handed_over:
            self.notifier.stopping()
            self.daemon.stop()
            farewell = self._farewell(self.daemon.held())
        self.checks.stop()
        self.network.close()
        if self.status_socket:
            self.status_socket.close(keep_path=self.handed_over)
        self.log.info(farewell)
        if self._new_process:
            self._forward_signals(self._new_process.pid)

    def _farewell(self, left: List[str]) -> str:
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
        self._cancel_upgrade()
        self.daemon.resign(self.loop.stop)

    def report(self) -> Dict[str, Any]:
        return {**self.describe(), **self.daemon.report()}

    # -- the configuration

    def reload(self) -> None:
        """An upgrade under way was started with the old configuration, so it starts again with the new one."""
        upgrading = self._cancel_upgrade()
        super().reload()
        if upgrading:
            self.upgrade()

    def _load(self) -> List[str]:
        text, faults = file.load(self.path)
        settings, faults = (None, faults) if faults else config.parse(text, self.path, host)
        if settings:
            faults = self._move_status_socket(settings.status_socket)
        if settings and not faults:
            self.daemon.apply(settings)
            self.text = text
        return faults

    def _open_status_socket(self, path: str) -> None:
        """Open it, or serve without it: the addresses matter more than a report on them.

        :raises InUse: there is another agent, which has the same addresses
        """
        try:
            self.status_socket = status_socket.StatusServer(self.loop, path, self.report)
        except status_socket.InUse:
            raise
        except status_socket.Refused as refused:
            self._lacks(f"{NO_STATUS}: {str(refused).rstrip('.')}")

    def _move_status_socket(self, path: str) -> List[str]:
        """Answer at another path, or return why that is not possible and go on at the old one."""
        if self.status_socket and self.status_socket.path == path:
            return []
        try:
            new = status_socket.StatusServer(self.loop, path, self.report)
        except status_socket.Refused as refused:
            if self.status_socket or isinstance(refused, status_socket.InUse):
                return [str(refused)]
            return []  # there was none before either: a new configuration need not wait for it
        if self.status_socket:
            self.status_socket.close()
        self.status_socket = new
        self.missing_privileges = [each for each in self.missing_privileges if not each.startswith(NO_STATUS)]
        return []

    # -- upgrades

    def upgrade(self) -> None:
        """Start the version that is installed now; it takes over once it is ready."""
        if self.stopping or self._new_process:
            return
        if not self.status_socket:
            self._abort_upgrade("there is no status socket to hand over, so restart the agent")
            return
        self.reload_error = None
        self.notifier.reloading()
        state = {"config": self.text, "door": [self.status_socket.path, self.status_socket.socket.fileno()]}
        try:
            self._new_process = NewProcess(self.loop, self._environ, state, self._hand_over, self._abort_upgrade)
        except OSError as error:
            self._abort_upgrade(f"it cannot be started: {in_words(error)}")

    def _hand_over(self) -> None:
        """Send the state to the new process, and send nothing to any router from then on."""
        known = {"since": self.since, "daemon": self.daemon.to_json()}
        if not (self._new_process and self._new_process.commit(known)):
            self._abort_upgrade("it does not go on from where this one is")
            return
        self.handed_over = True
        self.notifier.succeeded(self._new_process.pid)
        self.loop.stop()

    def _forward_signals(self, pid: int) -> None:
        """Send the new process the signals that reached this one too late to be handled."""
        for number in self._signals.pending:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _abort_upgrade(self, why: str) -> None:
        self._new_process = None
        self.reload_error = f"The new version does not take over: {why}."
        self.log.warning(f"{self.reload_error} The old one keeps running.")
        self._notify_ready()

    def _cancel_upgrade(self) -> bool:
        """Return whether an upgrade was under way."""
        new_process, self._new_process = self._new_process, None
        if new_process:
            new_process.close()
        return new_process is not None

    def _take_over(self, before: OldProcess) -> None:
        """Go on as the process that started this one. If this raises, the old process goes on itself."""
        settings, faults = config.parse(before.text, self.path)
        if settings is None:
            raise status_socket.Refused(f"What is in force is not understood by this version: {' '.join(faults)}")
        self.text = before.text
        self.daemon.start(settings, later=True)
        known = before.request_handover()
        self.since = known["since"]
        self.daemon.resume(known["daemon"])
        before.commit()
        self.status_socket = status_socket.StatusServer(
            self.loop, before.status_path, self.report, before.status_socket
        )
        self.log.info(f"onprem.lb {VERSION} takes over from here.")
        if self.notifier.watchdog:  # the old process has just fed it; systemd does not listen to this one yet
            self.loop.after(self.notifier.watchdog, self._feed_watchdog)


def main(path: str, settings: Settings, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> int:
    """Run the daemon; return the exit code."""
    try:
        running = Lifecycle(path, log, notifier, environ, OldProcess.of(os.environ))
    except OSError as error:
        log.fault("start", f"The network cannot be had: {error.strerror}.")
        return 1
    try:
        running.run(settings)
    except (status_socket.Refused, UpgradeAborted) as refused:
        log.fault("start", str(refused))
        return 1
    return 0
