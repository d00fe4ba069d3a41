# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of the direct plane as text for a terminal, and as metrics. Pure."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Tuple

from ..proxy.settings import STATES
from ..proxy.views import text
from ..runtime.prometheus import PROCESS, Metric, Report, Sample, exposition, of_report
from ..runtime.text_table import ago, columns, heading, problems, short, span
from . import faults
from .settings import HOST

PREFIX = "onprem_lb_direct"
SERVICE_HEADS = ("SERVICE", "STATE", "SERVERS UP", "VIPS", "BUCKETS")
SERVER_HEADS = ("SERVER", "STATE", "SINCE", "NEW", "ADDRESS", "MAC", "WEIGHT", "PACKETS", "LAST CHECK", "")


def table(report: Report, now: float) -> str:
    """
    :param now: seconds since 1970, for how long ago something was
    """
    parts = [
        heading(report, now),
        *problems(report),
        _table(report, now),
        *([report["mtu_fault"]] if report["mtu_fault"] else []),
        *_kept(report),
        *_left(report),
        *_paths(report),
        columns(SERVICE_HEADS, [_service(service) for service in report["services"]]),
        columns(SERVER_HEADS, [_server(service, each, now) for service in report["services"] for each in _of(service)]),
    ]
    return "\n\n".join(parts) + "\n"


def prometheus(report: Report) -> str:
    return exposition(PREFIX, METRICS, report)


def _of(service: Report) -> List[Report]:
    found: List[Report] = service["servers"]
    return found


def _table(report: Report, now: float) -> str:
    found = report["table"]
    there = "is there" if found["in_force"] else "is not there"
    age = f", written {ago(found['written_at'], now)} ago" if found["written_at"] else ""
    took = f" within {span(found['took'])}" if found["took"] is not None else ""
    fault = f" The last transaction was refused: {found['fault']}" if found["fault"] else ""
    vrrp = "the VIP may be here" if report["up"] else "the VIP should be elsewhere"
    restored = f", brought back {found['restored']} times" if found["restored"] else ""
    return f"The table on {report['interface']} {there}{age}{took}{restored}; {vrrp}.{fault}"


def _kept(report: Report) -> List[str]:
    """Return what a reader should know of services whose servers are all down."""
    kept = [service["name"] for service in report["services"] if service["kept"]]
    said = "No server is up with a path that is proven, so the last ones stay in the table"
    return [f"{said}: {', '.join(kept)}."] if kept else []


def _left(report: Report) -> List[str]:
    """Return whose new connections the servers do not get."""
    left = [service["name"] for service in report["services"] if service["new_connections"] == HOST]
    return [f"New connections are left to the programs of this host: {', '.join(left)}."] if left else []


def _paths(report: Report) -> List[str]:
    found = faults.paths(report)
    return ["\n".join(found)] if found else []


def _service(service: Report) -> Tuple[str, ...]:
    return service["name"], service["state"], text.up(service), text.listens(service), str(service["buckets"])


def _server(service: Report, server: Report, now: float) -> Tuple[str, ...]:
    return (
        f"{service['name']}/{server['name']}",
        server["state"],
        ago(server["since"], now),
        "yes" if server["owner"] else "no",
        server["address"],
        server["mac"] or "not known",
        str(server["weight"]),
        short(server["packets"]),
        text.check(server),
        text.checked(server, now),
    )


def _table_value(what: str) -> Callable[[Report], Iterable[Sample]]:
    return of_report(lambda report: report["table"][what] or 0)


def _services(what: str) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [({"service": each["name"]}, each[what]) for each in report["services"]]


def _servers(value: Callable[[Report], Any]) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [
        ({"service": service["name"], "server": each["name"]}, value(each))
        for service in report["services"]
        for each in _of(service)
    ]


def _states(report: Report) -> Iterable[Sample]:
    return [
        ({"service": service["name"], "server": each["name"], "state": state}, each["state"] == state)
        for service in report["services"]
        for each in _of(service)
        for state in STATES
    ]


def _chances(report: Report) -> Iterable[Sample]:
    found = _servers(lambda server: server["second_chances"])(report)
    return [(labels, given) for labels, given in found if given is not None]


METRICS = (
    *PROCESS,
    Metric("up", "Whether VRRP is told that the VIP may be here.", of_report(lambda r: r["up"])),
    Metric("table_in_force", "Whether the kernel has the table.", _table_value("in_force")),
    Metric("table_written_seconds", "When it was last written, since 1970.", _table_value("written_at")),
    Metric("table_change_duration_seconds", "How long its last change took.", _table_value("took")),
    Metric("table_transactions_total", "Transactions of nft.", _table_value("transactions")),
    Metric("table_whole_total", "Those of them that replaced the table.", _table_value("whole")),
    Metric("table_refused_total", "Those that nft rejected.", _table_value("refused")),
    Metric("table_restored_total", "How often another program has changed the table.", _table_value("restored")),
    Metric("mtu_fits", "Whether the interface takes what the servers take.", of_report(lambda r: not r["mtu_fault"])),
    Metric("service_usable_servers", "How many servers get new connections.", _services("usable")),
    Metric("service_kept", "Whether no server is up and proven, so that the last ones stay.", _services("kept")),
    Metric("server_state", "1 for a server's current state, 0 for the others.", _states),
    Metric("server_owner", "Whether a server gets new connections.", _servers(lambda s: s["owner"])),
    Metric("server_mac_known", "Whether its MAC address is known.", _servers(lambda s: bool(s["mac"]))),
    Metric("server_path_proven", "Whether it is known to answer for the VIPs.", _servers(lambda s: s["proven"])),
    Metric("server_second_chances", "Whether it hands on what it does not have.", _chances),
    Metric("server_packets_total", "Packets that it got through this balancer.", _servers(lambda s: s["packets"])),
    Metric(
        "server_unanswered_attempts",
        "Attempts of clients, while none leads to a connection.",
        _servers(lambda s: s["unanswered_attempts"]),
    ),
)
