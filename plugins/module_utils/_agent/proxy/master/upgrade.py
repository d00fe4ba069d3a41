# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Upgrade of the running proxy by exec: same process, same sockets, same children."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Optional

from ...runtime.loop import MILLION, Loop
from ...runtime.upgrade_state import POLL_INTERVAL, command_line, passed_on

COMMAND = "proxy"  # of the command line, which is used up to here for the test
TEST_TIMEOUT = 20 * MILLION
# These must not end the new program before it has installed its handlers.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)


class ConfigTest:
    """Has the new program check the configuration: after the exec there is no way back."""

    def __init__(self, loop: Loop, path: str, done: Callable[[Optional[str]], None]) -> None:
        """Start the test. Raises OSError.

        :param path: the configuration
        :param done: called with what is wrong, or None
        """
        self._loop, self._done = loop, done
        self._deadline = loop.now() + TEST_TIMEOUT
        own = command_line()
        command = [*own[: own.index(COMMAND)], "check-config", "--config", path]
        null = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1)]
        self._pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=null)
        self._poll()

    def _poll(self) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            good = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
            self._done(None if good else "it does not take the configuration")
        elif self._loop.now() > self._deadline:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._done("it does not say whether it takes the configuration")
        else:
            self._loop.after(POLL_INTERVAL, self._poll)


def exec_new_version(known: Dict[str, Any], environ: Mapping[str, str]) -> NoReturn:
    """Replace this process by the program that its command line names now. Raises OSError.

    :param known: the state for the new version, with the descriptors that stay open: see ``Master.to_json``
    """
    with passed_on(known, _descriptors(known), environ) as whole:
        # The new program handles what arrives from now on, once it has unblocked them: see ``Signals``.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            os.execve(sys.executable, command_line(), whole)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _descriptors(known: Dict[str, Any]) -> List[int]:
    return [
        known["door"][1],
        *(number for _address, _port, number in known["listeners"]),
        *(worker["connection"] for worker in known["hands"]),
    ]
