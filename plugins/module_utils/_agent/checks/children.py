# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Programs: started as somebody, in a session of their own, and noticed when they end."""

from __future__ import annotations

import os
import signal
import socket
from typing import Callable, Dict, NamedTuple, NoReturn, Optional, Sequence

from ..loop import Loop, Timer
from . import accounts, kernel
from .outcome import MILLION, in_words

GRACE = MILLION  # from SIGTERM to SIGKILL
NOT_STARTED = 127
IGNORED_HERE = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ending(NamedTuple):
    """How a program ended; all is well where ``fault`` is empty."""

    fault: str


class Child:
    """One program under way."""

    def __init__(self, loop: Loop, pid: int, report: int, on_end: Callable[[str], None]) -> None:
        self.pid, self.report, self.on_end = pid, report, on_end
        self.stopping: Optional[Timer] = None
        self._loop = loop

    def stop(self) -> None:
        """Ask it to end, and all that it has started in its session; a second later there is no more asking."""
        if not self.stopping:
            self.signal(signal.SIGTERM)
            self.stopping = self._loop.after(GRACE, lambda: self.signal(signal.SIGKILL))

    def signal(self, number: int) -> None:
        """To be called only until it is reaped: its number belongs to it and its group so long."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:  # so young that it has no group of its own yet
            os.kill(self.pid, number)
        except PermissionError:
            pass  # somebody else's now, through a program with the set-user-ID bit
