# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's report as Prometheus metrics. Pure."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, Tuple

from ...runtime.prometheus import PROCESS, Metric, Report, Sample, exposition, of_report
from ..settings import STATES, WORKER_STATES
from . import http

PREFIX = "onprem_lb_proxy"
TYPE = "text/plain; version=0.0.4; charset=utf-8"


def page(report: Report) -> http.Page:
    return http.Page(prometheus(report), type=TYPE)


def prometheus(report: Report) -> str:
    """Return the report in Prometheus's text format."""
    return exposition(PREFIX, METRICS, report)


def _services(value: Callable[[Report], float]) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [({"service": service["name"]}, value(service)) for service in report["services"]]


def _servers(value: Callable[[Report], float]) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [(labels, value(server)) for labels, server in _each(report)]


def _each(report: Report) -> Iterator[Tuple[Dict[str, Any], Report]]:
    for service in report["services"]:
        for server in service["servers"]:
            yield {"service": service["name"], "server": server["name"]}, server


def _states(report: Report) -> Iterator[Sample]:
    for labels, server in _each(report):
        for state in STATES:
            yield {**labels, "state": state}, server["state"] == state


def _checks(what: str) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [
        ({**labels, "type": server["check"]["type"]}, server["check"][what])
        for labels, server in _each(report)
        if server["check"]["at"]
    ]


def _monitors(report: Report) -> Iterator[Sample]:
    for monitor in report["monitors"]:
        yield {"monitor": monitor["name"]}, monitor["good"]


def _workers(report: Report) -> Iterator[Sample]:
    for state in WORKER_STATES:
        yield {"state": state}, sum(worker["state"] == state for worker in report["workers"])


def _count(what: str) -> Callable[[Report], float]:
    return lambda item: item[what]


METRICS = (
    *PROCESS,
    Metric("stopping", "Whether it accepts no new connections.", of_report(lambda r: r["state"] == "draining")),
    Metric("workers", "Worker processes, by state.", _workers),
    Metric("sessions_limit", "The limit of concurrent sessions.", of_report(lambda r: r["maxconn"])),
    Metric("monitor_good", "Whether a monitor endpoint answers 200.", _monitors),
    Metric("service_up", "Whether a service has a server that is up.", _services(lambda s: s["state"] == "up")),
    Metric("service_usable_servers", "How many of its servers get new connections.", _services(_count("usable"))),
    Metric("service_sessions", "Current sessions.", _services(_count("current"))),
    Metric("service_sessions_total", "Sessions that reached a server.", _services(_count("sessions"))),
    Metric("service_refused_total", "Connections for which no server was available.", _services(_count("refused"))),
    Metric("service_received_bytes_total", "Bytes from clients.", _services(_count("bytes_in"))),
    Metric("service_sent_bytes_total", "Bytes to clients.", _services(_count("bytes_out"))),
    Metric("server_state", "1 for the state in which a server is, 0 for the others.", _states),
    Metric("server_state_since_seconds", "When it entered its state, since 1970.", _servers(_count("since"))),
    Metric("server_check_up", "Whether its last check succeeded; absent until there was one.", _checks("up")),
    Metric("server_check_duration_seconds", "How long its last check took.", _checks("took")),
    Metric("server_weight", "Its effective weight.", _servers(lambda s: s["weight"]["effective"])),
    Metric("server_sessions", "Current sessions.", _servers(_count("current"))),
    Metric("server_sessions_total", "Sessions that reached it.", _servers(_count("sessions"))),
    Metric("server_received_bytes_total", "Bytes from clients.", _servers(_count("bytes_in"))),
    Metric("server_sent_bytes_total", "Bytes to clients.", _servers(_count("bytes_out"))),
    Metric("server_connect_errors_total", "Connections to it that failed.", _servers(_count("connect_errors"))),
    Metric("server_retries_total", "Failed connections that were retried.", _servers(_count("retries"))),
    Metric("server_resets_total", "Sessions that were reset.", _servers(_count("resets"))),
)
