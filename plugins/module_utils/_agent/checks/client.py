# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A daemon's checks, in two processes: one for what strangers answer, which has no rights, and one for the rest."""

from __future__ import annotations

from typing import Sequence

from ..runtime import accounts
from ..runtime.loop import Loop
from . import server
from .checks_process import Callbacks, ChecksProcess, OnMessage, OnResult, OnRun, Run
from .settings import HTTPS, NETWORK_TYPES, Check

VRRP = "vrrp"


def _ignore(_run: Run) -> None:
    """Ignore the runs of checks."""


class Checks:
    """The checks, and the programs to notify."""

    def __init__(self, loop: Loop, callbacks: Callbacks, daemon: str = VRRP) -> None:
        """
        :param daemon: whose they are, in at most 4 letters
        """
        self._local = ChecksProcess(loop, callbacks, f"{daemon}-checks", server.serve)
        self._network = ChecksProcess(loop, callbacks, f"{daemon}-net-checks", server.serve_unprivileged)
        self._uses_network = self._stopped = False

    @classmethod
    def start(
        cls, loop: Loop, on_result: OnResult, on_message: OnMessage, on_run: OnRun = _ignore, daemon: str = VRRP
    ) -> Checks:
        """Fork the process for local checks. Call this while the daemon is small, and before it becomes real-time.

        :param on_run: called for each run of a check that has ``every``, before ``on_result``
        """
        checks = cls(loop, Callbacks(on_result, on_message, on_run), daemon)
        if not accounts.may_change():
            accounts.own()  # now, when to wait for a directory harms nothing
        checks._local.start()
        return checks

    @property
    def pid(self) -> int:
        """The process for local checks, 0 while there is none."""
        return self._local.pid

    @property
    def network_pid(self) -> int:
        """The process for checks over the network, 0 while there is none."""
        return self._network.pid

    def apply(self, checks: Sequence[Check], script_user: str) -> None:
        """Set all checks. Those that have not changed go on without interruption."""
        over_network = [check for check in checks if check.type in NETWORK_TYPES]
        if any(step.type == HTTPS for check in over_network for step in check.sequence):
            self._network.serve_by(server.serve_unprivileged_with_tls)
        if over_network and not self._uses_network and not self._stopped:
            self._uses_network = True
            self._network.start()
        self._network.apply(over_network, script_user)
        self._local.apply([check for check in checks if check.type not in NETWORK_TYPES], script_user)

    def run(self, command: Sequence[str], user: str) -> None:
        """Run a notify program; calls of the same program run one after the other. A failure becomes a message."""
        self._local.run(command, user)

    def stop(self) -> None:
        """End the processes. Waits, some seconds at most, until the notify programs have run."""
        self._stopped = True
        self._network.stop()
        self._local.stop()
