# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of the health gate as a table and as Prometheus metrics; docs/anycast.md describes its fields. Pure."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List

from ..checks import show as checks
from ..runtime.prometheus import PROCESS, Metric, Report, Sample, exposition, of_report
from ..runtime.text_table import ago, columns, heading, problems
from .gate import REASONS

PREFIX = "onprem_lb_anycast"


def table(report: Report, now: float) -> str:
    """Return the report as text for a terminal.

    :param now: seconds since 1970, for how long ago something was
    """
    heads = ("VIP", "STATE", "SINCE", "ADDRESS", "TRACKS", "WHY")
    rows = [
        (
            vip["name"],
            f"{'on' if vip['held'] else 'off'} {report['interface']}",
            ago(vip["since"], now),
            vip["address"],
            " ".join(vip["track"]),
            _why(vip),
        )
        for vip in report["vips"]
    ]
    parts = [heading(report, now), *problems(report), *_interface(report), columns(heads, rows)]
    return "\n\n".join([*parts, checks.table(report["checks"], now)]) + "\n"


def _interface(report: Report) -> List[str]:
    return [] if report["interface_up"] else [f"Interface {report['interface']} is down or not there."]


def _why(vip: Report) -> str:
    detail = vip["detail"] or "all checks succeed"
    refused = "; the kernel refuses it" if vip["wanted"] not in (None, vip["held"]) else ""
    others = f"; also on {', '.join(vip['elsewhere'])}" if vip["elsewhere"] else ""
    return f"{detail}{refused}{others}"


def prometheus(report: Report) -> str:
    """Return the report in Prometheus's text format."""
    return exposition(PREFIX, METRICS, report)


def _each(value: Callable[[Report], float]) -> Callable[[Report], Iterable[Sample]]:
    return lambda report: [(_labels(vip), value(vip)) for vip in report["vips"]]


def _labels(vip: Report) -> Dict[str, Any]:
    return {"vip": vip["name"], "address": vip["address"]}


def _reasons(report: Report) -> Iterable[Sample]:
    for vip in report["vips"]:
        for reason in REASONS:
            yield {**_labels(vip), "reason": reason}, vip["reason"] == reason


METRICS = (
    *PROCESS,
    Metric("held", "Whether a VIP is on the interface, from which it is announced.", _each(lambda v: v["held"])),
    Metric("since_seconds", "Since when that is so, since 1970.", _each(lambda v: v["since"])),
    Metric("reason", "1 for the reason of the last decision on a VIP, 0 for the others.", _reasons),
    Metric("elsewhere", "How many other interfaces have a VIP as well.", _each(lambda v: len(v["elsewhere"]))),
    Metric("interface_up", "Whether the interface is up.", of_report(lambda r: r["interface_up"])),
    Metric(
        "held_back",
        "Whether a switchover or a maintenance holds the host back.",
        of_report(lambda r: bool(r["held_back"])),
    ),
    Metric("restored_total", "How often the work of another program was undone.", of_report(lambda r: r["restored"])),
    checks.UP,
)
