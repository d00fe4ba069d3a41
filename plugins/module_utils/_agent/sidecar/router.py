# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What keepalived leaves undone, when it was killed and when it has yielded: see `keepalived.resignation` and `.peers`.

And what its member must answer to hold a VIP: see `keepalived.answers`.

The agent needs nobody for either. Of both it is known here whether they run, and whether they stand still.
"""

from __future__ import annotations

import re
from typing import List

from ..keepalived import answers, conf, peers, resignation
from ..net import netlink, raw_sockets
from ..runtime.background import SUCCESS, Background
from ..runtime.log import Log
from ..runtime.loop import MILLION, Loop
from ..vrrp import config
from ..vrrp.settings import Instance, virtual_addresses
from .config import Router
from .fifo import ENDED, Fifo
from .standstill import Standstill, ending, is_held_elsewhere

# As keepalived writes them: INSTANCE "api" BACKUP 254.
YIELDED = re.compile(r'INSTANCE "(.+)" BACKUP [0-9]+')
TELL_FOR = 10 * MILLION  # microseconds


def of_agent(text: str) -> List[conf.Router]:
    """Return the Virtual Routers of a configuration of the agent, as `conf.routers` does. Raises ValueError."""
    settings, faults = config.parse(text)
    if settings is None:
        raise ValueError(" ".join(faults))
    return [_as_router(instance) for instance in settings.instances]


def _as_router(instance: Instance) -> conf.Router:
    held = [
        conf.VirtualAddress(each.interface, each.ip, int(each.address.partition("/")[2]))
        for each in virtual_addresses(instance)
    ]
    return conf.Router(
        **{key: getattr(instance, key) for key in ("name", "interface", "vrid", "version", "peers", "priority")},
        interval=instance.interval / MILLION,
        auth_pass="",
        source=instance.source or "",
        advertised=tuple(each.address for each in held),
        held=tuple(held),
    )


class RouterWatch:
    """Resigns for a keepalived that has ended, tells the peers of one that has yielded, and asks what it tracks."""

    def __init__(self, loop: Loop, settings: Router, log: Log) -> None:
        self._loop, self._settings, self._log = loop, settings, log
        self._life = Fifo(loop, settings.fifo, self._take)
        self._changes = Fifo(loop, settings.notify_fifo, self._changed)

    def start(self) -> None:
        """Raises OSError."""
        if self._settings.notify_fifo:
            self._changes.open()
        self._life.open()
        if not self._life.is_held:  # it has ended while nobody looked
            self._execute()
        answers.ask(self._loop, self._log, self._settings.keepalived, self._settings.questions)
        if self._settings.keepalived or self._settings.agent:  # and not the gate of VIPs that BGP announces
            self._watch_standstill()

    def _watch_standstill(self) -> None:
        end = ending(self._settings.fifo)
        kernel, unread = netlink.Netlink, raw_sockets.read_unread
        Standstill(self._loop, self._log, self._routers, kernel, unread, end, is_held_elsewhere).start()

    def _routers(self) -> List[conf.Router]:
        """Return the Virtual Routers of the configuration as it is now. Raises OSError and ValueError."""
        path = self._settings.keepalived or self._settings.agent
        if not path:
            return []
        with open(path, encoding="utf-8", errors=conf.UNDECODED) as file:
            text = file.read()
        return conf.routers(text) if self._settings.keepalived else of_agent(text)

    @property
    def runs(self) -> bool:
        return self._life.is_held

    def _take(self, line: str) -> None:
        if line == ENDED:
            self._execute()

    def _execute(self) -> None:
        if self._settings.keepalived:
            resignation.main(self._settings.keepalived)

    def _changed(self, line: str) -> None:
        found = YIELDED.fullmatch(line)
        if found:
            self._tell(found.group(1))

    def _tell(self, name: str) -> None:
        """Tell them in a process of its own, because that takes as long as they take to answer."""

        def tell() -> bytes:
            return b"" if peers.main(self._settings.keepalived, name) == 0 else b"failed"

        def told(_result: bytes, ending: str) -> None:
            if ending != SUCCESS:
                self._log.warning(f"{name}: its peers were not told that it has yielded: {ending}.")

        try:
            Background(self._loop, "yielded", tell, told, TELL_FOR)
        except OSError as error:
            self._log.warning(f"{name}: its peers cannot be told that it has yielded: {error.strerror}.")
