# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prometheus's text format, version 0.0.4. Pure."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, NamedTuple, Tuple, Union

Report = Dict[str, Any]
Labels = Union[str, Dict[str, Any]]  # a mapping, or as they are written: see ``labels_of``
Sample = Tuple[Labels, float]  # and its value

ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


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
        lines += [
            f"{name}{labels if isinstance(labels, str) else labels_of(labels)} {value:.17g}"
            for labels, value in metric.samples(report)
        ]
    return "\n".join(lines) + "\n"


def labels_of(labels: Dict[str, Any]) -> str:
    """Return labels as they are written."""
    return f"{{{pairs_of(labels)}}}" if labels else ""


def extended(labels: str, pairs: str) -> str:
    """Return labels, of which there are some, with more of them at the end."""
    return f"{labels[:-1]},{pairs}}}"


def pairs_of(labels: Dict[str, Any]) -> str:
    """Return labels as they are written, without the braces."""
    return ",".join(f'{key}="{str(value).translate(ESCAPES)}"' for key, value in labels.items())
