# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks beside keepalived what a member must answer to hold a VIP, and tells keepalived by a track file for each.

Nothing is started for a question, and what this process is late by counts for nothing (`checks.patience`). A file has 1
while its question is not answered, and its weight takes the priority away. Otherwise it has 0, also while this does not
know: when it has just started. systemd removes the files when this has ended, which keepalived takes for 0.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable, NamedTuple, Optional

from ..checks import rise_fall
from ..checks.dialogues import network_probe
from ..checks.outcome import Outcome
from ..checks.periodic import PeriodicProbe
from ..checks.settings import Check
from ..net import netlink, sockets
from ..runtime import realtime
from ..runtime.log import Log
from ..runtime.loop import MILLION, Loop
from ..runtime.sd_notify import Notifier, keep_alive
from . import conf
from .offers import Offers
from .senders import reason

ANSWERED, MISSING = "0\n", "1\n"


class Question(NamedTuple):
    """What is asked, and the track file that says whether it is answered."""

    file: str  # its path; its name is that of the check
    check: Check


def question(file: str, interval: float, timeout: float, **same: Any) -> Question:
    """Return what to ask.

    :param interval: in seconds, as the timeout
    :param same: ``name``, ``type``, ``address``, ``port``, ``rise``, ``fall``, and a web server's ``path`` and ``host``
    """
    times = {"interval": round(interval * MILLION), "timeout": round(timeout * MILLION)}
    return Question(file, Check(**{**same, **times}))


class Verdicts:
    """Counts the outcomes of a question, and says what follows from each."""

    def __init__(self, check: Check, write: Callable[[str], None], offer: Callable[[int], None], log: Log) -> None:
        """
        :param write: writes the track file
        :param offer: offers the VIPs to the other members after so many missing answers; after 0, no more
        """
        self._check, self._write, self._offer, self._log = check, write, offer, log
        self._state = rise_fall.RiseFall(True)  # so that the first failure does not decide
        self._missing = 0  # answers since the check has failed
        self._written: Optional[str] = None
        self._put(ANSWERED)

    def take(self, outcome: Outcome) -> None:
        check, before = self._check, self._state
        self._state = rise_fall.count(before, outcome.success, check.rise, check.fall)
        if self._state.up != before.up:
            self._log.warning(
                f"{check.name} succeeds again." if self._state.up else f"{check.name} fails: {outcome.detail}."
            )
        self._put(ANSWERED if self._state.up else MISSING)
        self._missing = 0 if self._state.up else self._missing + 1
        self._offer(self._missing)

    def _put(self, text: str) -> None:
        """Write the file where it differs, or where it could not be written before."""
        if text == self._written:
            return
        name = self._check.name
        try:
            self._write(text)
        except OSError as error:
            self._log.fault(name, f"The track file of {name} cannot be written: {reason(error)}.")
            return
        self._written = text
        self._log.cured(name, f"The track file of {name} is written again.")


def writer(path: str) -> Callable[[str], None]:
    """Return what writes a file in its place, where keepalived watches it."""

    def write(text: str) -> None:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    return write


def ask(loop: Loop, log: Log, config: str, questions: Iterable[Question]) -> None:
    """Ask for as long as the loop runs.

    :param config: the path of keepalived's configuration
    """

    def read_config() -> str:
        with open(config, encoding="utf-8", errors=conf.UNDECODED) as text:
            return text.read()

    for file, check in questions:
        offers = Offers(loop, log, read_config, check.name, netlink.Netlink, sockets.open_socket)
        verdicts = Verdicts(check, writer(file), offers.make, log)
        PeriodicProbe(loop, check.interval, network_probe(loop, check), verdicts.take).start()


def main(config: str, *questions: str) -> int:
    """Ask until a signal ends this process.

    :param questions: each in JSON, as `question` takes it
    """
    loop, log = Loop(), Log()
    asked = [question(**json.loads(each)) for each in questions]
    ask(loop, log, config, asked)
    missing = realtime.schedule()
    names = ", ".join(each.check.name for each in asked)
    log.info(f"Asks {names}" + (f", without {missing}." if missing else "."))
    keep_alive(loop.after, Notifier())
    loop.run()
    return 0
