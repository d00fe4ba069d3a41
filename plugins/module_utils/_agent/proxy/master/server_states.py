# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state of each server: from its checks, from failed connections, and from the administrator's orders.

The key of a server is SERVICE/SERVER. Workers get a mapping for it: ``state``, ``weight``, and whether its sessions
must end (``shutdown``).
"""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional

from ...checks.checks_process import Result, Run
from ...checks.settings import Check
from ...runtime.loop import MILLION, Loop, Timer
from ..settings import DOWN, DRAIN, LATE, MAINT, NONE, READY, UP, Server, Service, in_use
from ..settings import Health as HealthSettings
from ..worker import proxy_header

RAMP_STEPS = 20  # of a slow start, as HAProxy's
MIN_RAMP_STEP = MILLION // 10
MIN_RAMP_SHARE = 0.05  # of its weight, for a server that has just come up

# What a check takes from its service.
CHECK_FIELDS = tuple(key for key in Check._fields if key in HealthSettings._fields and key not in ("port", "steps"))

ServerUpdates = Dict[str, Dict[str, Any]]  # by the server's key: what workers get


class Dependencies(NamedTuple):
    """Everything that ``Health`` uses."""

    loop: Loop
    checks: Any  # a `ChecksProcess`
    log: Any  # log.Log
    send_updates: Callable[[ServerUpdates], None]  # to the workers
    wall: Callable[[], float] = time.time  # seconds since 1970
    outage: str = "connections to it are refused"  # what follows for a service without a server


class ServerState:
    """The state of a server of a service."""

    def __init__(self, service: Service, server: Server, now: float) -> None:
        self.service, self.server, self.since = service, server, now
        self.key = key_of(service, server)
        self.backup = server.backup
        self.check = check_of(service, server)
        self.late_check = late_check_of(self.check, service) if self.check else None
        self.healthy = True  # until a check, which starts at once, finds otherwise
        self.answers_late = bool(self.late_check)  # the same, of its second check
        self.checked = self.late_checked = False  # whether its checks have had a result
        self.run: Optional[Run] = None  # the latest of its check
        self.run_at: Optional[float] = None
        self.admin_state = READY
        self.ramp_up_since: Optional[int] = None  # of a slow start; microseconds of the loop's clock

    @property
    def state(self) -> str:
        if self.admin_state == MAINT:
            return MAINT
        if not self.healthy and not self.answers_late:
            return DOWN
        if self.admin_state == DRAIN:
            return DRAIN
        return UP if self.healthy else LATE

    @property
    def certain(self) -> bool:
        """Whether its state is more than an assumption."""
        return not self.check or (self.checked and (self.healthy or self.late_checked or not self.late_check))

    @property
    def usable(self) -> bool:
        """Whether it may get new connections, or could if no other server did."""
        return self.state in (UP, LATE) and self.server.weight > 0

    @property
    def checks(self) -> List[Check]:
        return [check for check in (self.late_check, self.check) if check]

    @property
    def last_check(self) -> Dict[str, Any]:
        """Its last check, for the report."""
        return {
            "type": self.service.health.type,
            "up": self.run.success if self.run else None,
            "at": self.run_at,
            "took": self.run.duration / MILLION if self.run else None,
            "detail": self.run.detail if self.run else "",
        }

    def weight(self, now: int) -> float:
        """Return its effective weight: a fraction of the configured one during a slow start."""
        if self.ramp_up_since is None:
            return self.server.weight
        share = max(MIN_RAMP_SHARE, (now - self.ramp_up_since) / self.service.health.slow_start)
        return self.server.weight if share >= 1 else round(self.server.weight * share, 3)

    def to_json(self) -> Dict[str, Any]:
        """Return the state that is not in the settings."""
        return {
            "check": _as_json(self.check),
            "order": self.admin_state,
            "healthy": self.healthy,
            "answers_late": self.answers_late,
            "late_judged": self.late_checked,
            "since": self.since,
            "judged": self.checked,
            "run": list(self.run or ()),
            "run_at": self.run_at,
            "rising": self.ramp_up_since,  # the clock is the kernel's, and goes on
        }

    def restore(self, known: Dict[str, Any]) -> None:
        """Take over from this server in the previous version."""
        self.admin_state = known["order"]
        mine, before = _as_json(self.check), known["check"]
        if before == mine[: len(before)] and bool(before) == bool(mine):  # an older version lacks the last fields
            self.healthy, self.checked, self.since = known["healthy"], known["judged"], known["since"]
            self.answers_late = known.get("answers_late", True) and bool(self.late_check)
            self.late_checked = known.get("late_judged", False)
            self.run, self.run_at = Run(*known["run"]) if known["run"] else None, known["run_at"]
            self.ramp_up_since = known["rising"] if self.service.health.slow_start else None

    def succeed(self, before: ServerState) -> None:
        """Take over from this server under the previous settings."""
        self.admin_state = before.admin_state
        if self.check == before.check:
            self.healthy, self.checked, self.since = before.healthy, before.checked, before.since
            self.answers_late = bool(self.late_check) and (before.answers_late or not before.late_check)
            self.late_checked = before.late_checked
            self.run, self.run_at = before.run, before.run_at
            self.ramp_up_since = before.ramp_up_since if self.service.health.slow_start else None


ServerStates = Dict[str, ServerState]


class Health:
    """The state of every server."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._loop, self._checks, self._log, self._send, self._wall, self._outage = dependencies
        self._servers: ServerStates = {}
        self._late: ServerStates = {}  # by the names of their second checks
        self._by_service: Dict[str, List[ServerState]] = {}
        self._ramps: Dict[str, Timer] = {}

    def __getitem__(self, key: str) -> ServerState:
        return self._servers[key]

    def server_state(self, service: Service, server: Server) -> ServerState:
        return self._servers[key_of(service, server)]

    def known(self) -> List[str]:
        return list(self._servers)

    def __contains__(self, key: str) -> bool:
        return key in self._servers

    def apply(self, services: Iterable[Service], inherited: Optional[Dict[str, Any]] = None) -> ServerStates:
        """Switch to other settings. The caller starts workers that know them: see ``updates``.

        :param inherited: from the previous version's ``to_json``; counts until a check has a result
        :return: the previous states, for ``switch_to``
        """
        before, new = self._servers, []
        for service in services:
            same = self._by_service.get(service.name, [])
            new += same if same and same[0].service == service else self._changed(service, inherited or {})
        self.switch_to({entry.key: entry for entry in new})
        return before

    def _changed(self, service: Service, inherited: Dict[str, Any]) -> List[ServerState]:
        """Return states for a service that is new or was changed."""
        states = [ServerState(service, server, self._wall()) for server in service.servers]
        for entry in states:
            if entry.key in self._servers:
                entry.succeed(self._servers[entry.key])
            elif entry.key in inherited:
                entry.restore(inherited[entry.key])
        return states

    def switch_to(self, states: ServerStates) -> None:
        """Use these server states, and no others."""
        self._servers, self._by_service = states, {}
        for entry in states.values():
            self._by_service.setdefault(entry.service.name, []).append(entry)
        self._late = {late_name(key): entry for key, entry in states.items()}
        self._checks.apply([check for entry in states.values() for check in entry.checks], "")
        for entry in states.values():
            self._ramp_up(entry)
        for service in self._by_service:
            self._report_outage(service)

    def updates(self) -> ServerUpdates:
        """Return the updates for a new worker."""
        return {key: self._update(entry) for key, entry in self._servers.items()}

    def to_json(self) -> Dict[str, Any]:
        """Return the state for the next version."""
        return {key: entry.to_json() for key, entry in self._servers.items()}

    def usable(self, service: str) -> int:
        """Return how many servers of a service get new connections: HAProxy's nbsrv."""
        return len(in_use([entry for entry in self._by_service.get(service, ()) if entry.usable]))

    def take_run(self, run: Run) -> None:
        """Record a run of a check, for the report."""
        entry = self._servers.get(run.name)
        if entry:
            entry.run, entry.run_at = run, self._wall()

    def take_result(self, result: Result) -> None:
        """Apply a change of a check's state."""
        if result.name in self._late:
            return self._take_late(self._late[result.name], result)
        entry = self._servers.get(result.name)
        if entry is None:  # it was removed while the result was under way
            return None
        first, entry.checked = not entry.checked, True
        if result.up != entry.healthy:
            entry.healthy = result.up
            # The first result after the start is no recovery, so it needs no slow start.
            self._change(entry, result.detail, slowly=not first)
        return None

    def _take_late(self, entry: ServerState, result: Result) -> None:
        """Apply a change of a second check's state."""
        before, entry.answers_late, entry.late_checked = entry.state, result.up, True
        if entry.state != before:
            self._change(entry, result.detail, slowly=False)

    def suspect(self, key: str) -> None:
        """A connection failed: check at once. It is the check that decides."""
        entry = self._servers.get(key)
        if entry and entry.check and entry.state != DOWN:
            self._checks.suspect(key if entry.healthy else late_name(key))

    def orders(self) -> Dict[str, str]:
        """Return the orders by server, without those that are ready."""
        return {key: entry.admin_state for key, entry in self._servers.items() if entry.admin_state != READY}

    def command(self, key: str, order: str) -> None:
        """Apply an order: drain (no new connections), maint (as if it were down), or ready."""
        entry = self._servers[key]
        if entry.admin_state != order:
            before, entry.admin_state = entry.state, order
            if entry.state != before:
                self._change(entry, "as ordered", slowly=before in (DOWN, MAINT))

    def _change(self, entry: ServerState, why: str, slowly: bool) -> None:
        """Log and apply a change of a server's state."""
        entry.since = self._wall()
        state, service = entry.state, entry.service
        entry.ramp_up_since = self._loop.now() if slowly and state == UP and service.health.slow_start else None
        up = sum(other.state == UP for other in self._by_service[service.name])
        left = f"{up} of {len(service.servers)} servers of {service.name} are up"
        (self._log.info if state == UP else self._log.warning)(f"{entry.key} is {state}: {why}. {left}.")
        self._report_outage(service.name)
        self._send({entry.key: self._update(entry)})
        self._ramp_up(entry)

    def _ramp_up(self, entry: ServerState) -> None:
        """Raise the weight of a server that has come up, step by step."""
        timer = self._ramps.pop(entry.key, None)
        if timer:
            timer.cancel()
        if entry.ramp_up_since is not None:
            step = max(MIN_RAMP_STEP, entry.service.health.slow_start // RAMP_STEPS)
            self._ramps[entry.key] = self._loop.after(step, lambda: self._ramp_step(entry.key))

    def _ramp_step(self, key: str) -> None:
        entry = self._servers.get(key)
        if entry is None or entry.ramp_up_since is None:
            return
        update = self._update(entry)
        if update["weight"] == entry.server.weight:
            entry.ramp_up_since = None
        self._send({key: update})
        self._ramp_up(entry)

    def _update(self, entry: ServerState) -> Dict[str, Any]:
        return {
            "state": entry.state,
            "weight": entry.weight(self._loop.now()),
            "shutdown": entry.service.health.shutdown_sessions and entry.state in (DOWN, MAINT),
        }

    def _report_outage(self, service: str) -> None:
        """Log once when a service has lost all of its servers, and when it has one again."""
        if self.usable(service):
            self._log.cured(service, f"{service} has a server again.")
        else:
            self._log.fault(service, f"{service} has no server that is up: {self._outage}.")


def key_of(service: Service, server: Server) -> str:
    return f"{service.name}/{server.name}"


def check_of(service: Service, server: Server) -> Optional[Check]:
    """Return how a server is checked, None if it is not."""
    health = service.health
    if health.type == NONE:
        return None
    same = {key: getattr(health, key) for key in CHECK_FIELDS}
    # As in HAProxy: another port than that of the traffic is taken to expect no PROXY header.
    greeting = proxy_header.local().decode("latin-1") if service.send_proxy else ""
    return Check(
        name=key_of(service, server),
        address=server.address,
        port=health.port or server.port,
        greeting="" if health.port else greeting,
        every=True,
        steps=tuple(step if step.port else step._replace(port=server.port, greeting=greeting) for step in health.steps),
        **same,
    )


def _as_json(check: Optional[Check]) -> List[Any]:
    return list(json.loads(json.dumps(check or ())))


def late_name(key: str) -> str:
    """Return the name of a server's second check."""
    return f"{key}/late"


def late_check_of(check: Check, service: Service) -> Optional[Check]:
    """Return the second check of a server, which waits for longer; None if there is none.

    A server that refuses fails it sooner than the first one, and is down at once and not late before. One that cannot
    be reached fails it soon afterwards: a balancer that is cut off must not go on saying that it has servers.
    """
    if not service.health.late_timeout:
        return None
    return check._replace(
        name=late_name(check.name),
        interval=3 * check.interval,
        fast_interval=check.interval,
        timeout=service.health.late_timeout,
        connect_timeout=service.health.late_connect,
        fall=min(2, check.fall),
        every=False,
    )
