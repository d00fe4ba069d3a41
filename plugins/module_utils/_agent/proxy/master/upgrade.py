# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A new version of this program takes the place of the running one: same process, same sockets, same children."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Optional

from ...runtime.loop import MILLION, Loop
from ...runtime.upgrade_state import LOOK, VARIABLE, command_line, save

COMMAND = "proxy"  # of the command line, as far as which it is taken over for a trial
PATIENCE = 20 * MILLION  # until the trial is given up
# What must not end the new program before it can hear it.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)


class ConfigTest:
    """The new program reads the configuration: whether it can is worth knowing before there is no way back."""

    def __init__(self, loop: Loop, path: str, done: Callable[[Optional[str]], None]) -> None:
        """Begin. Raises OSError.

        :param path: the configuration
        :param done: is told what is wrong, or None
        """
        self._loop, self._done = loop, done
        self._late = loop.now() + PATIENCE
        own = command_line()
        command = [*own[: own.index(COMMAND)], "check-config", "--config", path]
        null = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1)]
        self._pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=null)
        self._look()

    def _look(self) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            good = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
            self._done(None if good else "it does not take the configuration")
        elif self._loop.now() > self._late:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._done("it does not say whether it takes the configuration")
        else:
            self._loop.after(LOOK, self._look)


def become(known: Dict[str, Any], environ: Mapping[str, str]) -> NoReturn:
    """Go on as what the command line means now. Raises OSError.

    :param known: what ``taken`` will return to it, with the descriptors that are to stay open: see ``Master.remember``
    """
    left = save(known)
    handed_over = [left, *_descriptors(known)]
    for descriptor in handed_over:
        os.set_inheritable(descriptor, True)
    # What comes now is heard by the new program, once it listens: see ``Signals``.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        os.execve(sys.executable, command_line(), {**environ, VARIABLE: str(left)})
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        for descriptor in handed_over:
            os.set_inheritable(descriptor, False)
        os.close(left)


def _descriptors(known: Dict[str, Any]) -> List[int]:
    return [
        known["door"][1],
        *(number for _address, _port, number in known["listeners"]),
        *(hand["connection"] for hand in known["hands"]),
    ]
