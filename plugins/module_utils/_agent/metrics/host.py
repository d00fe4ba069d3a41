# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What Prometheus is told of a host: its router, its other parts, its last drill, its certificates. Pure."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional

from ..config import reports
from ..runtime.prometheus import Metric, Report, Sample, exposition, of_report
from ..vrrp import show
from ..vrrp.core import machine

PREFIX = "onprem_lb_host"


def text(host: Report, router: Optional[Report], others: str = "") -> str:
    """Return all metrics.

    :param host: ``{written, router_answers, parts, last_drill, certificates}``: which `parts` answer, by name, and of
        each certificate a `served.Served`, by path. A host without a VRRP router has None for whether that answers
    :param router: the agent's report, keepalived's, or None if neither is known
    :param others: the metrics of the other parts
    """
    return exposition(PREFIX, METRICS, host) + (_of(router) if router else "") + others


def _of(router: Report) -> str:
    try:
        return show.prometheus(router) if "agent" in router else show.prometheus_of_router(router)
    except reports.STRANGE:  # it is of another version, which reports something else
        return ""


def silent(last: Optional[Report]) -> Optional[Report]:
    """Return the report of a router that no longer answers: it is as before its start, in Initialize."""
    if last is None:
        return None
    instances = [{**instance, "state": machine.INITIALIZE, "held": []} for instance in last["instances"]]
    return {"instances": instances, "checks": []}


def last_drill(record: Any) -> float:
    """Return when the last drill ended, as its record says; 0 if there was none."""
    at = record.get("at") if isinstance(record, dict) else None
    return float(at) if isinstance(at, (int, float)) else 0.0


def _certificates(field: str) -> Callable[[Report], Iterable[Sample]]:
    def samples(report: Report) -> Iterable[Sample]:
        known = {path: getattr(each, field) for path, each in report["certificates"].items()}
        return [({"path": path}, value) for path, value in known.items() if value is not None]

    return samples


def _router_answers(report: Report) -> Iterable[Sample]:
    return [] if report["router_answers"] is None else [({}, report["router_answers"])]


def _parts(report: Report) -> Iterable[Sample]:
    return [({"part": name}, answers) for name, answers in report["parts"].items()]


METRICS = (
    Metric("metrics_written_seconds", "When this file was written, since 1970.", of_report(lambda r: r["written"])),
    Metric("router_answers", "Whether the VRRP router answers, where there is one.", _router_answers),
    Metric("part_answers", "Whether a part answers that this host is configured to have.", _parts),
    Metric("last_drill_seconds", "When the last drill ended; 0 if never.", of_report(lambda r: r["last_drill"])),
    Metric("certificate_expires_seconds", "When a certificate that is served expires.", _certificates("expires")),
    Metric("certificate_loaded", "Whether a file has the certificate that is served.", _certificates("loaded")),
)
