# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lifecycle of ``sidecar``: from its start until the VRRP router beside it has ended, after SIGTERM."""

from __future__ import annotations

import signal
from typing import Optional

from ..runtime.log import Log
from ..runtime.loop import MILLION, Loop
from ..runtime.sd_notify import Notifier, keep_alive
from ..runtime.signals import Signals
from .balancer import BalancerWatch, run
from .config import Settings
from .router import RouterWatch

LOOK_EVERY = MILLION // 20  # microseconds, whether the router has ended
STOP_WITHIN = 5 * MILLION  # it gets SIGTERM at the same time, and gives its VIPs up


class Sidecar:
    """One run."""

    def __init__(self, settings: Settings, log: Log, notifier: Notifier) -> None:
        self._log, self._settings, self._notifier = log, settings, notifier
        self.loop = Loop()
        self._balancer: Optional[BalancerWatch] = None
        self._router: Optional[RouterWatch] = None
        if settings.balancer:
            self._balancer = BalancerWatch(self.loop, settings.balancer, log)
        if settings.router:
            self._router = RouterWatch(self.loop, settings.router, log)
        self._stop_until = 0

    def run(self) -> None:
        """Run until SIGTERM. Raises OSError."""
        Signals(self.loop, {signal.SIGTERM: self.stop, signal.SIGINT: self.stop})
        run(self._settings.first, self._log)
        if self._router:
            self._router.start()
        if self._balancer:
            self._balancer.start()
        keep_alive(self.loop.after, self._notifier)
        self._log.info("The sidecar watches.")
        self.loop.run()

    def stop(self) -> None:
        """End once the router beside it has ended, or at once if it is asked again.

        A router that goes on is not this one's: only this container is restarted. Then everything stays as it is.
        """
        if self._stop_until:
            self.loop.stop()
        else:
            self._stop_until = self.loop.now() + STOP_WITHIN
            self._log.info("The sidecar ends after the router, or when it is asked again.")
            self._end_after_the_router()

    def _end_after_the_router(self) -> None:
        if self._router and self._router.runs:
            if self.loop.now() < self._stop_until:
                self.loop.after(LOOK_EVERY, self._end_after_the_router)
            else:
                self.loop.stop()
            return
        if self._balancer:
            self._balancer.end()
        self.loop.stop()


def main(settings: Settings) -> int:
    """Return the exit code."""
    log = Log()
    try:
        Sidecar(settings, log, Notifier()).run()
    except OSError as error:
        log.warning(f"{error.filename or 'The network'} cannot be used: {error.strerror}.")
        return 1
    return 0
