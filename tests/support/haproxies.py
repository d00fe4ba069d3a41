# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed HAProxy with a frontend of its test, as its unit runs it: a master that is reloaded by a signal.

A master that starts, or loads its file anew, discards this signal until it has set its handler. Then it has said
"Loading success", and its worker serves, for some time.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from support import waiting
from support.ports import free_ports

CONFIG = """\
global
    stats socket {socket} mode 660 level admin expose-fd listeners
    stats timeout 1d
defaults
    mode http
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend front
    {lines}
    http-request return status 200
"""


def reload(master: subprocess.Popen[bytes]) -> None:
    """Have a master load its file anew, as soon as it can. With one that has ended this does nothing."""
    waiting.until(lambda: master.poll() is not None or _handles_reload(master.pid), "the master handles no signal")
    master.send_signal(signal.SIGUSR2)


def _handles_reload(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    caught, blocked = (int(re.findall(rf"{name}:\s*(\w+)", status)[0], 16) for name in ("SigCgt", "SigBlk"))
    return bool((caught & ~blocked) >> (signal.SIGUSR2 - 1) & 1)


class Haproxy:
    """A context manager: it serves from the beginning to the end of the block."""

    def __init__(self, folder: Path, lines: str) -> None:
        """:param lines: of the frontend; `{port}` is a free port of 127.0.0.1"""
        (self.port,), self.socket = free_ports(1), f"{folder}/haproxy.sock"
        self.config = folder / "haproxy.cfg"
        self.config.write_text(CONFIG.format(socket=self.socket, lines=lines.format(port=self.port)))
        self._notices, self._seen = folder / "notices", 0

    def __enter__(self) -> Haproxy:
        with open(self._notices, "w", encoding="utf-8") as notices:
            command = [shutil.which("haproxy") or "haproxy", "-W", "-f", str(self.config)]
            self._master = subprocess.Popen(command, stderr=notices)
        self._wait()
        return self

    def __exit__(self, *_error: Any) -> None:
        self._master.terminate()
        self._master.wait()

    @property
    def pid(self) -> int:
        return self._master.pid

    def accepts(self) -> bool:
        """Whether it would load its configuration now: what its unit asks before a reload."""
        tested = subprocess.run(["haproxy", "-c", "-q", "-f", self.config], check=False, capture_output=True)
        return tested.returncode == 0

    def reload(self) -> None:
        """Do what `systemctl reload` does, and return when the new worker serves."""
        assert self.accepts()
        reload(self._master)
        self._wait()

    def _wait(self) -> None:
        waiting.until(lambda: self._notices.read_text().count("Loading success") > self._seen)
        self._seen += 1
