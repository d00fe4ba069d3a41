# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What follows from the balancer's start, stop and end: the track file, and the commands that are tied to it."""

from __future__ import annotations

import os
import subprocess
from typing import Iterable, Optional

from ..checks import http
from ..checks.network import NetworkProbe
from ..checks.outcome import Outcome
from ..runtime.log import Log
from ..runtime.loop import MILLION, Loop, Timer
from .config import Balancer, Command
from .fifo import ENDED, Fifo

LOCALHOST = "127.0.0.1"
STOPPING = "stopping"  # the line that its container writes before it stops it
ASK_EVERY, ASK_FOR = MILLION // 20, MILLION // 2  # microseconds, until a balancer that has started serves
COMMAND_TIMEOUT = 5  # seconds


def run(commands: Iterable[Command], log: Log) -> None:
    """Run commands, each of which may fail."""
    for command in commands:
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=True,
                timeout=COMMAND_TIMEOUT,
                text=True,
                errors="replace",
            )
        except subprocess.CalledProcessError as error:
            log.warning(f"{' '.join(command)} has failed with {error.returncode}: {error.stderr}")
        except (OSError, subprocess.SubprocessError) as error:
            log.warning(f"{' '.join(command)} has failed: {error}")


class BalancerWatch:
    """Says in the track file whether the balancer is down."""

    def __init__(self, loop: Loop, settings: Balancer, log: Log) -> None:
        self._loop, self._settings, self._log = loop, settings, log
        self._serves = False
        self._timer: Optional[Timer] = None
        dialogue = http.dialogue(f"localhost:{settings.ready_port}", settings.ready_path, ["200"])
        self._probe = NetworkProbe(loop, LOCALHOST, settings.ready_port, ASK_FOR, dialogue)
        self._fifo = Fifo(loop, settings.fifo, self._take)

    def start(self) -> None:
        """Raises OSError."""
        self._fifo.open()
        if not self._fifo.is_held:
            self._down("does not run")

    def end(self) -> None:
        """Take away what is tied to the balancer: the VRRP router beside the sidecar has ended."""
        self._fifo.close()
        self._stop_asking()
        run(self._settings.stop_commands, self._log)

    def _take(self, line: str) -> None:
        if line == ENDED:
            self._down("has ended")
        elif line == STOPPING:
            self._down("is stopping")
        else:
            if self._serves:  # its end, and the start after it, were read at once
                self._down("has ended")
            self._stop_asking()
            self._ask()

    def _ask(self) -> None:
        self._probe.start(self._answered)

    def _answered(self, outcome: Outcome) -> None:
        if outcome.success:
            self._up()
        else:
            self._timer = self._loop.after(ASK_EVERY, self._ask)

    def _stop_asking(self) -> None:
        self._probe.stop()
        if self._timer:
            self._timer.cancel()

    def _up(self) -> None:
        self._serves = True
        run(self._settings.start_commands, self._log)
        self._write("0")
        self._log.info("The balancer serves.")

    def _down(self, how: str) -> None:
        """Tell the router first, so that the VIP leaves at once."""
        self._serves = False
        self._stop_asking()
        self._write("1")
        run(self._settings.stop_commands, self._log)
        self._log.info(f"The balancer {how}.")

    def _write(self, down: str) -> None:
        """Write it in place: keepalived and the agent watch the file that is there."""
        path = self._settings.down_file
        if not path:
            return
        try:
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(f"{down}\n")
        except OSError as error:
            self._log.fault(path, f"{path} cannot be written: {error.strerror}.")
