# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the proxy says of its services, servers, monitors and workers; docs/proxy.md has the fields."""

from __future__ import annotations

from typing import Any, Dict, List

from ...runtime.loop import MILLION
from ..settings import DOWN, UP, Service, Settings
from .counters import Counters
from .http_endpoints import HttpEndpoints
from .server_states import Health, ServerState
from .workers import WorkerPool

Report = Dict[str, Any]


def build(
    settings: Settings, health: Health, tally: Counters, crew: WorkerPool, desk: HttpEndpoints, now: int
) -> Report:
    """Return everything that changes while the proxy runs.

    :param now: microseconds of the loop's clock
    """
    return {
        "workers": [
            {
                "pid": hand.pid,
                "generation": hand.generation.number,
                "state": "draining" if hand.draining else "serving",
                "since": hand.since,
                "current": tally.current(hand.pid),
            }
            for hand in crew.hands
        ],
        "maxconn": settings.maxconn,
        "services": [_service(service, health, tally, now) for service in settings.services],
        "monitors": [
            {
                "name": monitor.name,
                "bind": list(monitor.bind),
                "port": monitor.port,
                "path": monitor.path,
                "good": not desk.missing(monitor),
                "detail": ", ".join(desk.missing(monitor)),
            }
            for monitor in settings.monitors
        ],
    }


def _service(service: Service, health: Health, tally: Counters, now: int) -> Report:
    members: List[ServerState] = [health.member(service, server) for server in service.servers]
    return {
        "name": service.name,
        "bind": list(service.bind),
        "port": service.port,
        "mode": service.mode,
        "balance": service.balance,
        "maxconn": service.maxconn,
        "state": UP if health.usable(service.name) else DOWN,
        "usable": health.usable(service.name),
        "servers": [_server(member, tally, now) for member in members],
        **tally.of(service.name, now),
    }


def _server(member: ServerState, tally: Counters, now: int) -> Report:
    server, run = member.server, member.run
    return {
        "name": server.name,
        "address": server.address,
        "port": server.port,
        "backup": server.backup,
        "weight": {"configured": server.weight, "effective": member.weight(now)},
        "state": member.state,
        "since": member.since,
        "order": member.order,
        "check": {
            "type": member.service.health.type,
            "up": run.success if run else None,
            "at": member.run_at,
            "took": run.duration / MILLION if run else None,
            "detail": run.detail if run else "",
        },
        **tally.of(member.key, now),
    }
