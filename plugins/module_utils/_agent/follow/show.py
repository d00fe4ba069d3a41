# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report of ``follow`` as text for a terminal, and as metrics. Pure."""

from __future__ import annotations

from typing import Iterable, List

from ..runtime.prometheus import PROCESS, Metric, Report, Sample, exposition, of_report
from ..runtime.text_table import ago, columns, heading, problems
from . import words

PREFIX = "onprem_lb_follow"


def table(report: Report, now: float) -> str:
    """
    :param now: seconds since 1970, for how long ago something was
    """
    api = report["api"]
    where = f"{api['server']}, heard {ago(api['heard'], now)} ago" if api["server"] else "no API server answers"
    parts = [
        heading(report, now),
        *problems(report),
        f"{report['nodes']} nodes with {report['label']}, last change {ago(report['last_change'], now)} ago; {where}",
        *faults(report),
        columns(("SERVER", "ADDRESS"), [(each["name"], each["address"]) for each in report["servers"]]),
        columns(("OUTPUT", "STATE"), [(each["name"], each["fault"] or "follows") for each in report["balancers"]]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def faults(report: Report) -> List[str]:
    """Return what is wrong with the list."""
    found = [report["problem"], report["api"]["fault"], *map(words.kept, report.get("kept", []))]
    return [each for each in (*found, words.without_address(report["without_address"])) if each]


def prometheus(report: Report) -> str:
    return exposition(PREFIX, METRICS, report)


def _balancers(report: Report) -> Iterable[Sample]:
    return [({"balancer": each["name"]}, bool(each["fault"])) for each in report["balancers"]]


METRICS = (
    *PROCESS,
    Metric("nodes", "How many nodes have the label.", of_report(lambda r: r["nodes"])),
    Metric("servers", "How many servers there should be.", of_report(lambda r: len(r["servers"]))),
    Metric("list_kept", "Whether servers stay that a list would take away.", of_report(lambda r: bool(r["problem"]))),
    Metric("servers_kept", "How many stay that are none in the API.", of_report(lambda r: len(r.get("kept", [])))),
    Metric("nodes_left_out", "How many nodes have no address.", of_report(lambda r: len(r["without_address"]))),
    Metric("api_answers", "Whether an API server answers.", of_report(lambda r: bool(r["api"]["server"]))),
    Metric("heard_seconds", "When one last answered, since 1970.", of_report(lambda r: r["api"]["heard"] or 0)),
    Metric("changed_seconds", "When a node last changed, since 1970.", of_report(lambda r: r["last_change"] or 0)),
    Metric("api_errors_total", "Requests that have failed.", of_report(lambda r: r["api"]["errors"])),
    Metric("changes_total", "Changes of the balancers' servers.", of_report(lambda r: r["changes"])),
    Metric("balancer_behind", "Whether a balancer, a file or the names lack what they should have.", _balancers),
)
