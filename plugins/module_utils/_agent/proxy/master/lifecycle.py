# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's lifecycle on a host: from its start to SIGTERM, with reloads and upgrades between."""

from __future__ import annotations

import gc
import os
from typing import Any, Callable, Dict, List, Mapping, Optional

from ... import VERSION
from ...checks import server
from ...checks.checks_process import Callbacks, ChecksProcess
from ...checks.outcome import in_words
from ...config.file import Found
from ...runtime import lifecycle, privileges, upgrade_state
from ...runtime.log import Log
from ...runtime.loop import MILLION
from ...runtime.sd_notify import Notifier
from ..settings import Settings
from . import upgrade
from .config_reader import ConfigReader
from .listeners import Refused
from .master import Events, Master, Prepared

CHECKS_NAME = "proxy-checks"

# A report on thousands of servers makes hundreds of thousands of objects. With Python's default, 700, the garbage
# collector would visit all of them, and the settings, several times.
COLLECTION_THRESHOLD = 100_000

# Descriptors of a worker: those that it always has, and for each session its two sockets or, if both ways are spliced,
# the pipes as well.
WORKER_DESCRIPTORS = 256
SESSION_DESCRIPTORS, SPLICED_SESSION_DESCRIPTORS = 2, 6

# How often open requests are looked at before an upgrade, and how long they may delay it.
POLL_INTERVAL, OPEN_REQUESTS_TIMEOUT = MILLION // 200, MILLION // 2


Then = Callable[[bool], None]


class Lifecycle(lifecycle.Lifecycle):
    """One run of the proxy."""

    version = VERSION

    def __init__(self, path: str, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> None:
        super().__init__(path, log, notifier, environ)
        self._pid = os.getpid()  # not that of a process that only renders the report
        events = Events(self._serves, self._failed, self.loop.stop, self._reload_for)
        self.master = Master(self.loop, log, self.describe, events)
        self._failure: Optional[str] = None  # why it ends although it was not told to
        self._config_test: Optional[upgrade.ConfigTest] = None
        self._reading = False  # whether the configuration file is being read
        self._waiting: List[Then] = []  # for it to be read once more

    def run(self, found: Found) -> None:
        """Run until the last worker has ended. Raises Refused if no worker can serve."""
        gc.set_threshold(COLLECTION_THRESHOLD)
        inherited = upgrade_state.load(os.environ)
        self.text = found.text
        if inherited:
            self.since = inherited["since"]
            self.master.inherit(inherited)
            if inherited["checks"]:
                self.master.reap(inherited["checks"])
        prepared = self.master.prepare(found.settings)
        self.missing_privileges = self._raise_nofile(prepared.settings)
        for missing in self.missing_privileges:
            self.log.warning(f"Not available: {missing}.")
        self.checks = ChecksProcess(
            self.loop,
            Callbacks(self.master.take_result, self.log.warning, self.master.take_run),
            CHECKS_NAME,
            server.serve_unprivileged,
        )
        self.checks.start()
        self._watch_signals()
        try:
            self._serve(prepared, inherited)
            self.loop.run()
        finally:
            self.master.close()
            self.checks.stop()
        if self._failure:
            raise Refused([self._failure])
        self.log.info("The proxy has ended.")

    def _serve(self, prepared: Prepared, inherited: Optional[Dict[str, Any]]) -> None:
        try:
            self.master.start(self.checks, prepared, inherited)
        except OSError as error:
            raise Refused([f"no worker can be started: {in_words(error)}."]) from error
        self._feed_watchdog()

    def _serves(self) -> None:
        """A worker serves, for the first time or again."""
        self._notify_ready()
        self.log.info(f"onprem.lb {VERSION} serves by {self.path}.")

    def _failed(self, why: str) -> None:
        """End, so that the service manager moves the VIP elsewhere and starts the proxy again."""
        self._failure = why
        self.loop.stop()

    def _raise_nofile(self, settings: Settings) -> List[str]:
        """Raise the limit of open files as far as the sessions need it; return a sentence if it stays too low."""
        sessions = settings.maxconn // settings.workers
        missing = privileges.raise_nofile(
            SESSION_DESCRIPTORS * sessions + WORKER_DESCRIPTORS,
            SPLICED_SESSION_DESCRIPTORS * sessions + WORKER_DESCRIPTORS,
        )
        return [missing] if missing else []

    def describe(self) -> Dict[str, Any]:
        return {**super().describe(), "host": os.uname().nodename, "pid": self._pid}

    def stop(self) -> None:
        """Stop accepting, let open sessions finish, and end; when called twice, at once."""
        if self.stopping:
            self.master.drain(0)
            return
        self.stopping = True
        self.notifier.stopping()
        duration = min(self.master.settings.hard_stop_after, self.master.settings.stop_within)
        sessions = self.master.drain(duration)
        self.log.info(f"Stopping: {sessions} sessions may finish within {duration // MILLION} s.")

    def _notify_ready(self) -> None:
        """Report that the proxy serves; if no worker does yet, ``_serves`` will report it."""
        if not self.master.serves:
            return
        settings = self.master.settings
        self.notifier.status(f"{len(settings.services)} services, {settings.workers} workers")
        super()._notify_ready()

    # -- the configuration

    def reload(self) -> None:
        if not self.stopping:
            self.notifier.reloading()
            self._apply(lambda _in_force: self._notify_ready())

    def _reload_for(self, done: Callable[[Optional[str]], None]) -> None:
        """Reload for a client of the status socket; then call with why that is refused, None if it is not."""
        if self.stopping:
            done("the proxy is stopping.")
            return
        self.notifier.reloading()

        def applied(_in_force: bool) -> None:
            self._notify_ready()
            done(self.reload_error)

        self._apply(applied)

    def _apply(self, then: Then) -> None:
        """Apply the configuration file; then call with whether it is in force. A file with a fault changes nothing."""
        self._waiting.append(then)
        if not self._reading:
            self._read_file()

    def _read_file(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._reading = True
        try:
            ConfigReader(self.loop, self.path, lambda found: self._file_read(found, waiting))
        except OSError as error:
            fault = f"{self.path} cannot be read: {in_words(error)}."
            self.loop.after(0, lambda: self._file_read(Found("", None, [fault]), waiting))

    def _file_read(self, found: Found, waiting: List[Then]) -> None:
        self._reading = False
        if self.stopping:
            return
        faults = self._switch_to(found.settings) if found.settings else found.faults
        self.text = self.text if faults else found.text
        in_force = self._note_reload(faults)
        for then in waiting:
            then(in_force)
        if self._waiting:  # the file may have changed after it was read
            self._read_file()

    def _switch_to(self, new: Settings) -> List[str]:
        """Switch to other settings, or return why that is not possible; then nothing is changed."""
        try:
            prepared = self.master.prepare(new)
        except Refused as refused:
            return refused.reasons
        try:
            self.master.switch_to(prepared)
        except OSError as error:
            self.master.discard(prepared)
            return [f"no worker can be started: {in_words(error)}."]
        return []

    # -- upgrades

    def upgrade(self) -> None:
        """Become the version that is installed now, once it has accepted the configuration."""
        if self.stopping or self._config_test:
            return
        try:
            self._config_test = upgrade.ConfigTest(self.loop, self.path, self._config_tested)
        except (OSError, ValueError) as error:
            self.log.warning(f"A new version cannot be tried: {in_words(error)}.")

    def _config_tested(self, wrong: Optional[str]) -> None:
        if wrong:
            self.log.warning(f"The new version is refused, and the old one keeps running: {wrong}.")
        elif not self.stopping:
            self._apply(self._exec_if)  # opens every socket that the new version will want
            return
        self._config_test = None

    def _exec_if(self, in_force: bool) -> None:
        """Become the new version if the configuration that it has accepted is in force."""
        if in_force:
            self.master.pause()
            self._exec_when_idle(self.loop.now() + OPEN_REQUESTS_TIMEOUT)
        else:
            self._config_test = None

    def _exec_when_idle(self, deadline: int) -> None:
        """Become the new version as soon as no client waits for an answer of this one, or at the deadline."""
        if self.stopping:
            self.master.resume()
            return
        if self.master.open_requests and self.loop.now() < deadline:
            self.loop.after(POLL_INTERVAL, lambda: self._exec_when_idle(deadline))
            return
        self.notifier.reloading()
        known = {**self.master.to_json(), "since": self.since, "checks": self.checks.pid}
        try:
            upgrade.exec_new_version(known, self._environ)
        except OSError as error:
            self.log.warning(f"The new version cannot be started: {in_words(error)}.")
            self._config_test = None
            self.master.resume()
            self._notify_ready()


def main(path: str, found: Found, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> int:
    """Run the proxy; return the exit code."""
    try:
        Lifecycle(path, log, notifier, environ).run(found)
    except Refused as refused:
        for reason in refused.reasons:
            log.fault(reason, reason)
        return 1
    return 0
