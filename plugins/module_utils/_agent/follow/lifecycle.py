# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lifecycle of ``follow`` on a host: from its start to SIGTERM, with reloads between."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Optional, Set

from .. import VERSION
from ..config import certificates, file
from ..config.file import Found
from ..runtime import lifecycle, status_socket
from ..runtime.log import Log
from ..runtime.loop import MILLION, Earliest
from ..runtime.sd_notify import Notifier
from . import config, records, state, words
from .balancers import Balancers, Output, Words
from .changes import Applied
from .follower import Follower
from .groups import Groups, labels
from .names import Names
from .settings import Settings
from .watching import Changed, Connected, Interrupted, Listed, News, Removed, Trouble

MOST_TROUBLES = 8  # of an API server that are logged until it answers: their texts may be its own
STATE = Words("The list will not survive a restart", "The list survives a restart again.")
SETTLE = MILLION // 2  # from an event to what it changes: a storm of events is one change


class Lifecycle(lifecycle.Lifecycle):
    """One run of ``follow``."""

    version = VERSION

    def __init__(self, path: str, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> None:
        super().__init__(path, log, notifier, environ)
        self._status: Optional[status_socket.StatusServer] = None
        self._follower: Optional[Follower] = None
        self._names: Optional[Names] = None
        self._next_decision = Earliest(self.loop, self._decide)
        self._answers: Optional[int] = None  # the API server that does
        self._heard: Optional[float] = None
        self._last_change: Optional[float] = None
        self._api_fault: Optional[str] = None
        self._errors = 0
        self._noted: Set[str] = set()  # what was logged of the list
        self._troubles: Dict[int, Set[str]] = {}  # what was logged of each API server that does not answer

    def run(self, found: Found) -> None:
        """Run until SIGTERM. Raises status_socket.Refused."""
        self.text, settings = found.text, found.settings
        self._status = status_socket.StatusServer(self.loop, settings.status_socket, self.report)
        self._watch_signals()
        self._begin(settings)
        self.log.info(f"onprem.lb {VERSION} follows {', '.join(labels(settings))} by {self.path}.")
        self._notify_ready()
        self._feed_watchdog()
        try:
            self.loop.run()
        finally:
            self._end()
            self._status.close()
        self.log.info("follow has ended; the balancers keep their servers.")

    def stop(self) -> None:
        self.stopping = True
        self.notifier.stopping()
        self.loop.stop()

    def upgrade(self) -> None:
        """End: the service manager starts the version that is installed now. The balancers keep their servers."""
        self.stop()

    def _read(self) -> Found:
        return config.load(self.path)

    def _use(self, settings: Settings) -> List[str]:
        if self._status and settings.status_socket != self._status.path:
            return [f"status_socket is {settings.status_socket!r}: it can only be changed by a restart."]
        self._end()
        self._begin(settings)
        return []

    def _begin(self, settings: Settings) -> None:
        self.settings = settings
        known, fault = state.load(settings.state_file)
        if fault:
            self.log.warning(fault)
        self._known = known = records.newest(settings, known)
        self._state = Output("state_file", self.loop, self.log, STATE, self._save)
        self._state.apply()
        self._listed = False
        self._balancers = Balancers(self.loop, self.log, settings)
        self._groups = Groups(settings, known, self._balancers.present)
        self._balancers.want({label: known[label].servers for label in labels(settings) if label in known})
        self._follower = Follower(self.loop, settings, self._take)
        self._follower.start()
        self._names = Names(self.loop, self.log, settings, settings.hosts) if settings.hosts else None

    def _end(self) -> None:
        if self._follower:
            self._follower.stop()
        if self._names:
            self._names.stop()
        self._next_decision.cancel()
        self._answers = None
        self._state.stop()
        self._balancers.stop()

    # -- what the API server says

    def _take(self, news: List[News]) -> None:
        now = self.loop.now()
        for each in news:
            if isinstance(each, Connected):
                self._connected(each.server)
            elif isinstance(each, Trouble):
                self._trouble(each)
            elif isinstance(each, Interrupted):
                self.log.warning(words.interruption(each, self.settings.api))
            else:
                if self._names:
                    self._names.take(each)
                self._change(each, now)

    def _connected(self, server: int) -> None:
        self._answers, self._heard, self._api_fault = server, time.time(), None
        self.log.all_cured(self._troubles.pop(server, set()), f"{self.settings.api.servers[server]} answers.")

    def _trouble(self, trouble: Trouble) -> None:
        certificate = self.settings.api.certificate
        expires = certificates.expires(file.load(certificate)[0]) if certificate else None
        self._api_fault = words.sentence(trouble, self.settings.api, bool(expires and expires < time.time()))
        self._errors += 1
        if self._answers == trouble.server:
            self._answers = None
        known = self._troubles.setdefault(trouble.server, set())
        if len(known) < MOST_TROUBLES:
            known.add(self._api_fault)
            self.log.fault(self._api_fault, self._api_fault)

    def _change(self, news: News, now: int) -> None:
        self._heard = time.time()
        if isinstance(news, Listed):
            counts = self._groups.replace(news.nodes, now)
            self._listed = True
        elif isinstance(news, Changed):
            counts = self._groups.change(news.node, now)
        else:
            counts = isinstance(news, Removed) and self._groups.remove(news.name)
        if counts:  # the others are no servers, or say only that they live
            self._last_change = self._heard
        if counts or isinstance(news, Listed):
            self._next_decision.at(now + SETTLE)

    # -- what follows from it

    def _decide(self) -> None:
        known = self._groups.decide(self.loop.now(), lambda label: lambda: self._balancers.answering(label))
        self._note_problem()
        if known != self._known:
            self._known = known
            self._state.apply()
        self._balancers.want({label: each.servers for label, each in known.items()})
        due = self._groups.due()
        if due is not None:
            self._next_decision.at(due)

    def _note_problem(self) -> None:
        """Log what is wrong with the list, each once, and its end."""
        about = self._groups.report()
        found = {
            "list": self._groups.problem() or "",
            "address": words.without_address(about["without_address"]),
            **{f"kept {each['name']}": words.kept(each) for each in about["kept"]},
        }
        for key in self._noted.difference(key for key, sentence in found.items() if sentence):
            self.log.cured(key, words.MENDED.get(key) or f"{key.partition(' ')[2]} is a server as the API has it.")
        self._noted = {key for key, sentence in found.items() if sentence}
        for key in self._noted:
            self.log.fault(key, found[key])

    def _save(self) -> Applied:
        """Have the lists in the state file. Raises Refused."""
        has_servers = any(each.servers for each in self._known.values())
        if has_servers and state.load(self.settings.state_file)[0] != self._known:
            state.save(self.settings.state_file, self._known)
        return Applied([])

    def report(self) -> Dict[str, Any]:
        servers = self.settings.api.servers
        return {
            **self.describe(),
            **self._groups.report(),
            "servers": [server._asdict() for each in self._balancers.wanted.values() for server in each],
            "problem": self._groups.problem() if self._listed else None,
            "last_change": self._last_change,
            "changes": self._balancers.changes,
            "api": {
                "server": servers[self._answers] if self._answers is not None else None,
                "heard": self._heard,
                "fault": self._api_fault,
                "errors": self._errors,
            },
            "balancers": [
                *self._balancers.report(),
                *([self._names.report()] if self._names else []),
                self._state.report(),
            ],
        }


def main(path: str, found: Found, log: Log, notifier: Notifier, environ: Mapping[str, str]) -> int:
    """Run ``follow``; return the exit code."""
    try:
        Lifecycle(path, log, notifier, environ).run(found)
    except status_socket.Refused as refused:
        log.fault("start", str(refused))
        return 1
    return 0
