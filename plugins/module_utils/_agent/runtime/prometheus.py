# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prometheus's text format, version 0.0.4. Pure."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, NamedTuple, Tuple

Report = Dict[str, Any]
Sample = Tuple[Dict[str, Any], float]  # labels and a value


class Metric(NamedTuple):
    """A metric with its samples. It is a counter if the name ends with ``_total``, otherwise a gauge."""

    name: str
    help: str
    samples: Callable[[Report], Iterable[Sample]]


def of_report(value: Callable[[Report], float], *labels: str) -> Callable[[Report], Iterable[Sample]]:
    """Return a function that takes one sample from a whole report."""
    return lambda report: [({key: report[key] for key in labels}, value(report))]


PROCESS = (
    Metric("agent_info", "The agent itself, always 1.", of_report(lambda report: 1, "version")),
    Metric("start_time_seconds", "When the agent was started, since 1970.", of_report(lambda r: r["since"])),
    Metric(
        "config_refused",
        "Whether the last reload was refused, so that an older configuration is in force.",
        of_report(lambda report: bool(report["config_fault"])),
    ),
    Metric("limits", "How many privileges the agent lacks.", of_report(lambda report: len(report["limits"]))),
)


def exposition(prefix: str, metrics: Iterable[Metric], report: Report) -> str:
    lines = []
    for metric in metrics:
        name = f"{prefix}_{metric.name}"
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_labels(labels)} {float(value):.17g}" for labels, value in metric.samples(report)]
    return "\n".join(lines) + "\n"


def _labels(labels: Dict[str, Any]) -> str:
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    inside = ",".join(f'{key}="{str(value).translate(escaped)}"' for key, value in labels.items())
    return f"{{{inside}}}" if inside else ""
