# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's report as Prometheus metrics. Pure."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator

from ...runtime.prometheus import PROCESS, Metric, Report, Sample, exposition, extended, labels_of, of_report, pairs_of
from ..settings import CHECK_TYPES, STATES, WORKER_STATES
from . import http

PREFIX = "onprem_lb_proxy"
TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATE_PAIRS = [(state, pairs_of({"state": state})) for state in STATES]
TYPE_PAIRS = {type_of_check: pairs_of({"type": type_of_check}) for type_of_check in CHECK_TYPES}


def page(report: Report) -> http.Page:
    return http.Page(prometheus(report), type=TYPE)


def prometheus(report: Report) -> str:
    """Return the report in Prometheus's text format."""
    return exposition(PREFIX, METRICS, _with_labels(report))


def _with_labels(report: Report) -> Report:
    """Return the report with the labels of each service and server, which many samples share."""
    services = []
    for service in report["services"]:
        labels = labels_of({"service": service["name"]})
        servers = [
            {**server, "labels": extended(labels, pairs_of({"server": server["name"]}))}
            for server in service["servers"]
        ]
        services.append({**service, "labels": labels, "servers": servers})
    return {**report, "services": services}


def _services(value: Callable[[Report], float]) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [(service["labels"], value(service)) for service in report["services"]]


def _servers(value: Callable[[Report], float]) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [(server["labels"], value(server)) for server in _each(report)]


def _each(report: Report) -> Iterator[Report]:
    for service in report["services"]:
        yield from service["servers"]


def _states(report: Report) -> Iterator[Sample]:
    for server in _each(report):
        for state, pairs in STATE_PAIRS:
            yield extended(server["labels"], pairs), server["state"] == state


def _checks(what: str) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [
        (extended(server["labels"], TYPE_PAIRS[server["check"]["type"]]), server["check"][what])
        for server in _each(report)
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
    Metric("service_current_queue", "Clients that wait for any server (qcur).", _services(_count("qcur"))),
    Metric("service_max_queue", "How many did at most (qmax).", _services(_count("qmax"))),
    Metric("service_sessions_total", "Sessions that reached a server.", _services(_count("sessions"))),
    Metric("service_refused_total", "Connections for which no server was available.", _services(_count("refused"))),
    Metric("service_received_bytes_total", "Bytes from clients.", _services(_count("bytes_in"))),
    Metric("service_sent_bytes_total", "Bytes to clients.", _services(_count("bytes_out"))),
    Metric("server_state", "1 for a server's current state, 0 for the others.", _states),
    Metric("server_state_since_seconds", "When it entered its state, since 1970.", _servers(_count("since"))),
    Metric("server_check_up", "Whether its last check succeeded; absent until there was one.", _checks("up")),
    Metric("server_check_duration_seconds", "How long its last check took.", _checks("took")),
    Metric("server_weight", "Its effective weight.", _servers(lambda s: s["weight"]["effective"])),
    Metric("server_sessions", "Current sessions.", _servers(_count("current"))),
    Metric("server_current_queue", "Clients that wait for it and no other server (qcur).", _servers(_count("qcur"))),
    Metric("server_max_queue", "How many did at most (qmax).", _servers(_count("qmax"))),
    Metric("server_sessions_total", "Sessions that reached it.", _servers(_count("sessions"))),
    Metric("server_received_bytes_total", "Bytes from clients.", _servers(_count("bytes_in"))),
    Metric("server_sent_bytes_total", "Bytes to clients.", _servers(_count("bytes_out"))),
    Metric("server_connect_errors_total", "Connections to it that failed.", _servers(_count("connect_errors"))),
    Metric("server_retries_total", "Failed connections that were retried.", _servers(_count("retries"))),
    Metric("server_resets_total", "Sessions that were reset.", _servers(_count("resets"))),
)
