# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks the balancer beside keepalived whether it answers, and tells keepalived by a track file.

Nothing is started for a question, and what this process is late by counts for nothing (`checks.patience`). The file has
1 while the balancer does not answer, and its weight takes the priority away. Otherwise it has 0, also while this does
not know: when it has just started. systemd removes the file when this has ended, which keepalived takes for 0.
"""

from __future__ import annotations

from typing import Callable, Optional

from ..checks import network, rise_fall
from ..checks.outcome import Outcome
from ..checks.periodic import PeriodicProbe
from ..net import netlink, sockets
from ..runtime import realtime
from ..runtime.log import Log
from ..runtime.loop import MILLION, Loop
from ..runtime.sd_notify import Notifier
from . import conf
from .offers import Offers
from .senders import reason

QUESTION = b"show info\n"
# How long an answer may take, and how many in a row decide.
INTERVAL, LIMIT, COUNT = MILLION, MILLION // 2, 2
ANSWERS, SILENT = "0\n", "1\n"


def question(stream: network.Stream) -> network.Steps:
    """Ask as a user does at haproxy's runtime socket; any line is an answer."""
    stream.expect("no answer")
    yield from stream.send(QUESTION)
    if not (yield from stream.receive(1)):
        raise network.BadResponse("closed without an answer")
    return "answered"


class Verdicts:
    """Counts outcomes, and says what follows from each."""

    def __init__(self, write: Callable[[str], None], offer: Callable[[int], None], log: Log) -> None:
        """
        :param write: writes the track file
        :param offer: offers the VIPs to the other members after so many missing answers; after 0, no more
        """
        self._write, self._offer, self._log = write, offer, log
        self._state = rise_fall.RiseFall(True)  # so that the first failure does not decide
        self._silent = 0  # answers that were missing since it counts as silent
        self._written: Optional[str] = None
        self._put(ANSWERS)

    def take(self, outcome: Outcome) -> None:
        before, self._state = self._state, rise_fall.count(self._state, outcome.success, COUNT, COUNT)
        if self._state.up != before.up:
            self._log.warning(
                "The balancer answers again." if self._state.up else f"The balancer does not answer: {outcome.detail}."
            )
        self._put(ANSWERS if self._state.up else SILENT)
        self._silent = 0 if self._state.up else self._silent + 1
        self._offer(self._silent)

    def _put(self, text: str) -> None:
        """Write the file where it differs, or where it could not be written before."""
        if text == self._written:
            return
        try:
            self._write(text)
        except OSError as error:
            self._log.fault("file", f"The track file cannot be written: {reason(error)}.")
            return
        self._written = text
        self._log.cured("file", "The track file is written again.")


def writer(path: str) -> Callable[[str], None]:
    """Return what writes a file in its place, where keepalived watches it."""

    def write(text: str) -> None:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    return write


def _keep_alive(loop: Loop, notifier: Notifier) -> None:
    if notifier.watchdog:
        notifier.alive()
        loop.after(notifier.watchdog, lambda: _keep_alive(loop, notifier))


def main(config: str, name: str, file: str, address: str, port: str) -> int:
    """Ask until a signal ends this process.

    :param config: the path of keepalived's configuration
    :param name: of the track file there
    :param file: its path
    """
    loop, log = Loop(), Log()

    def read() -> str:
        with open(config, encoding="utf-8", errors=conf.UNDECODED) as text:
            return text.read()

    made = Offers(loop, log, read, name, netlink.Netlink, sockets.open_socket)
    verdicts = Verdicts(writer(file), made.make, log)
    probe = network.NetworkProbe(loop, address, int(port), LIMIT, question)
    PeriodicProbe(loop, INTERVAL, probe, verdicts.take).start()
    missing = realtime.schedule()
    log.info(f"Asks the balancer at {address}:{port}" + (f", without {missing}." if missing else "."))
    _keep_alive(loop, Notifier())
    loop.run()
    return 0
