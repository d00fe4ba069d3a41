# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's report as text for a terminal. Pure."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from ...runtime.prometheus import Report
from ...runtime.text_table import ago, columns, heading, problems, short, span


def table(report: Report, now: float) -> str:
    """
    :param now: seconds since 1970, for how long ago something was
    """
    parts = [heading(report, now), *notes(report)]
    parts.append(columns(SERVICE_HEADS, [_service(service) for service in report["services"]]))
    parts.append(columns(SERVER_HEADS, _servers(report, now)))
    if report["monitors"]:
        parts.append(columns(("MONITOR", "PATH", "ANSWERS", "WHY"), [_monitor(each) for each in report["monitors"]]))
    rows = [
        (str(each["pid"]), each["state"], ago(each["since"], now), str(each["current"])) for each in report["workers"]
    ]
    parts.append(columns(("WORKER", "STATE", "SINCE", "SESSIONS"), rows))
    return "\n\n".join(parts) + "\n"


def notes(report: Report) -> List[str]:
    """Return what a reader should know first."""
    stopping = ["It is stopping: the last sessions may finish."] if report["state"] == "draining" else []
    return stopping + problems(report)


TRAFFIC_HEADS = ("SESSIONS", "QCUR", "QMAX", "PER S", "IN/S", "OUT/S")
SERVICE_HEADS = ("SERVICE", "STATE", "SERVERS UP", "LISTENS ON", "BALANCE", *TRAFFIC_HEADS, "REFUSED")
SERVER_HEADS = ("SERVER", "STATE", "SINCE", "ADDRESS", "WEIGHT", *TRAFFIC_HEADS, "ERRORS", "LAST CHECK", "")


def _service(service: Report) -> Tuple[str, ...]:
    return (
        service["name"],
        service["state"],
        up(service),
        listens(service),
        service["balance"],
        *_traffic(service),
        short(service["refused"]),
    )


def _servers(report: Report, now: float) -> Sequence[Tuple[str, ...]]:
    return [
        (
            f"{service['name']}/{server['name']}",
            state(server),
            ago(server["since"], now),
            place(server["address"], server["port"]),
            weight(server),
            *_traffic(server),
            short(server["connect_errors"]),
            check(server),
            checked(server, now),
        )
        for service in report["services"]
        for server in service["servers"]
    ]


def _monitor(monitor: Report) -> Tuple[str, ...]:
    where = f"{listens(monitor)}{monitor['path']}"
    return monitor["name"], where, "200" if monitor["good"] else "503", monitor["detail"]


def up(service: Report) -> str:
    """How many of its servers are up."""
    return f"{sum(server['state'] == 'up' for server in service['servers'])} of {len(service['servers'])}"


def _traffic(item: Report) -> Tuple[str, ...]:
    now = [str(item[what]) for what in ("current", "qcur", "qmax")]
    return *now, *(short(item["rates"][what]) for what in ("sessions", "bytes_in", "bytes_out"))


def listens(item: Report) -> str:
    return " ".join(place(address, item["port"]) for address in item["bind"])


def place(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def state(server: Report) -> str:
    return f"{server['state']} (backup)" if server["backup"] else str(server["state"])


def weight(server: Report) -> str:
    configured, effective = server["weight"]["configured"], server["weight"]["effective"]
    return str(configured) if configured == effective else f"{effective:g} of {configured}"


def check(server: Report) -> str:
    """The type and the result of the last check."""
    found = server["check"]
    if found["type"] == "none":
        return "not checked"
    return f"{found['type']}: {'not known yet' if found['up'] is None else found['detail']}"


def checked(server: Report, now: float) -> str:
    """How long the last check took, and how long ago it was."""
    found = server["check"]
    return f"{span(found['took'])}, {ago(found['at'], now)} ago" if found["at"] else ""
