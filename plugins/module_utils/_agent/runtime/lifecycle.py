# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lifecycle that the daemons share: signals, the watchdog, reloads, and what a report says of the process."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .log import Log
from .loop import Loop
from .sd_notify import Notifier, keep_alive
from .signals import Signals


class Lifecycle:
    """One run of a daemon. A subclass defines what it means to stop, to apply a configuration and to upgrade."""

    version = ""

    def __init__(self, path: str, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> None:
        """``environ`` is what this process was started with: a new version of it is started with the same."""
        self.path, self.log, self.notifier, self._environ = path, log, notifier, environ
        self.since = time.time()
        self.text = ""  # of the configuration that is in force
        self.missing_privileges: List[str] = []
        self.reload_error: Optional[str] = None  # why the last reload or upgrade changed nothing
        self.stopping = False
        self.loop = Loop()

    def stop(self) -> None:
        """Stop gracefully; a second call stops at once."""
        raise NotImplementedError

    def upgrade(self) -> None:
        """Hand over to the version of this program that is installed now."""
        raise NotImplementedError

    def reload(self) -> None:
        """Apply the configuration file; one with a fault changes nothing."""
        if not self.stopping:
            self.notifier.reloading()
            self._apply_file()
            self._notify_ready()  # even if it was refused: systemd waits for it

    def describe(self) -> Dict[str, Any]:
        """Return the part of the report that is about this process."""
        return {
            "agent": "onprem.lb",
            "version": self.version,
            "pid": os.getpid(),
            "since": self.since,
            "config": self.path,
            "config_sha256": self._checksum(),
            "config_fault": self.reload_error,
            "limits": self.missing_privileges,
        }

    def _checksum(self) -> str:
        """Return the SHA-256 of the configuration in force."""
        import hashlib  # OpenSSL's library takes memory, and many agents are never asked for a report

        return hashlib.sha256(self.text.encode()).hexdigest()

    def _read(self) -> Tuple[str, Any, List[str]]:
        """Return the text of the configuration file, and its settings or every reason why they cannot be in force."""
        raise NotImplementedError

    def _use(self, settings: Any) -> List[str]:
        """Put settings in force, or return why that is not possible; then nothing is changed."""
        raise NotImplementedError

    def _apply_file(self) -> bool:
        """Apply the configuration file and log the result; return whether it is in force."""
        text, settings, faults = self._read()
        faults = faults or self._use(settings)
        self.text = self.text if faults else text
        return self._note_reload(faults)

    def _note_reload(self, faults: List[str]) -> bool:
        """Log the result of a reload; return whether the file is in force."""
        self.reload_error = " ".join(faults) or None
        if self.reload_error:
            self.log.warning(f"The reload is refused, and nothing is changed: {self.reload_error}")
        else:
            self.log.info(f"{self.path} is in force.")
        return not self.reload_error

    def _notify_ready(self) -> None:
        self.notifier.ready()

    def _handlers(self) -> Dict[signal.Signals, Callable[[], None]]:
        return {
            signal.SIGTERM: self.stop,
            signal.SIGINT: self.stop,
            signal.SIGHUP: self.reload,
            signal.SIGUSR2: self.upgrade,
        }

    def _watch_signals(self) -> None:
        self._signals = Signals(self.loop, self._handlers())

    def _feed_watchdog(self) -> None:
        keep_alive(self.loop.after, self.notifier)
