# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report on services, servers, monitors and workers; docs/proxy.md describes the fields."""

from __future__ import annotations

from typing import Any, Dict

from ..settings import DOWN, UP, Service, Settings
from .counters import Counters
from .http_endpoints import HttpEndpoints
from .server_states import Health, ServerState
from .workers import WorkerPool

Report = Dict[str, Any]


def build(
    settings: Settings, health: Health, counters: Counters, pool: WorkerPool, endpoints: HttpEndpoints, now: int
) -> Report:
    """Return the part of the report that changes while the proxy runs.

    :param now: microseconds of the loop's clock
    """
    return {
        "workers": [
            {
                "pid": worker.pid,
                "generation": worker.generation.number,
                "state": worker.state,
                "since": worker.since,
                "current": counters.current(worker.pid),
            }
            for worker in pool.workers
        ],
        "maxconn": settings.maxconn,
        "services": [_service(service, health, counters, now) for service in settings.services],
        "monitors": [
            {
                "name": monitor.name,
                "bind": list(monitor.bind),
                "port": monitor.port,
                "path": monitor.path,
                "good": not endpoints.failing_conditions(monitor),
                "detail": ", ".join(endpoints.failing_conditions(monitor)),
            }
            for monitor in settings.monitors
        ],
    }


def _service(service: Service, health: Health, counters: Counters, now: int) -> Report:
    states = [health.server_state(service, server) for server in service.servers]
    return {
        "name": service.name,
        "bind": list(service.bind),
        "port": service.port,
        "mode": service.mode,
        "balance": service.balance,
        "maxconn": service.maxconn,
        "state": UP if health.usable(service.name) else DOWN,
        "usable": health.usable(service.name),
        "servers": [_server(state, counters, now) for state in states],
        **counters.of(service.name, now),
    }


def _server(state: ServerState, counters: Counters, now: int) -> Report:
    server = state.server
    return {
        "name": server.name,
        "address": server.address,
        "port": server.port,
        "backup": server.backup,
        "maxconn": server.maxconn,
        "weight": {"configured": server.weight, "effective": state.weight(now)},
        "state": state.state,
        "certain": state.certain,
        "since": state.since,
        "order": state.admin_state,
        "check": state.last_check,
        **counters.of(state.key, now),
    }
