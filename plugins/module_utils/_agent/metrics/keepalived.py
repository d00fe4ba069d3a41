# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Has keepalived write what it does, and reads that.

keepalived's VRRP process writes each file in less than a millisecond, and logs the request. It creates them in /tmp,
for root alone because the data have the password; they are removed as soon as they are read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from typing import Any, Callable, Dict, Optional

from . import dumps

UNIT = "keepalived.service"
FOLDER = "/tmp"  # keepalived's, if its unit sets no other
DATA, STATISTICS = "keepalived.data", "keepalived.stats"
PARENTS_DATA = "keepalived_parent.data"  # which it writes with its data
WITHIN, POLL = 2.0, 0.01  # seconds
LARGEST = 16 * 1024 * 1024


class Refused(Exception):
    """keepalived cannot be asked; the message is a sentence."""


def main_pid() -> int:
    """Return keepalived's process, or 0 while it does not serve: a signal would end one that starts."""
    command = ["systemctl", "show", "--property=ActiveState,MainPID", UNIT]
    shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, timeout=WITHIN)
    properties = dict(line.partition("=")[::2] for line in shown.stdout.decode().splitlines())
    return int(properties.get("MainPID") or 0) if properties.get("ActiveState") == "active" else 0


class Keepalived:
    """The keepalived of this host."""

    def __init__(
        self,
        pid: Callable[[], int] = main_pid,
        send: Callable[[int, int], None] = os.kill,
        folder: str = FOLDER,
        within: float = WITHIN,
    ) -> None:
        """:param send: sends a process a signal"""
        self._pid, self._send, self._folder, self._within = pid, send, folder, within

    def report(self) -> Optional[Dict[str, Any]]:
        """Return what it reports; None while it does not run.

        :raises Refused: it writes nothing, or another user has a file in the place of its own
        """
        try:
            pid = self._pid()
            if not pid:
                return None
            self._remove()
            # Its data are complete when its statistics are there: it does one after the other.
            self._send(pid, signal.SIGUSR1)
            self._wait(DATA, lambda text: text)
            self._send(pid, signal.SIGUSR2)
            return self._wait(STATISTICS, lambda text: text and dumps.report(self._read(DATA), text))
        except (OSError, subprocess.SubprocessError) as error:
            raise Refused(f"keepalived cannot be asked: {error}.") from error
        finally:
            with contextlib.suppress(OSError):
                self._remove()

    def _wait(self, name: str, read: Callable[[str], Any]) -> Any:
        deadline = time.monotonic() + self._within
        while time.monotonic() < deadline:
            found = read(self._read(name))
            if found:
                return found
            time.sleep(POLL)
        raise Refused(f"keepalived has not written {os.path.join(self._folder, name)} within {self._within:g} s.")

    def _read(self, name: str) -> str:
        """Return what is in one of its files; '' while there is none."""
        try:
            file = os.open(os.path.join(self._folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        with open(file, encoding="utf-8", errors="replace") as opened:
            found = os.fstat(file)
            if found.st_uid != os.geteuid() or not stat.S_ISREG(found.st_mode):
                raise Refused(f"{os.path.join(self._folder, name)} is another user's: remove it.")
            return opened.read(LARGEST)

    def _remove(self) -> None:
        for name in (DATA, STATISTICS, PARENTS_DATA):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._folder, name))
