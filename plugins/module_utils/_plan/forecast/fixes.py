# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The single changes of a plan that may mend what the forecast finds wrong with it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple

from ..model.instances import TRACKING
from .cluster import Cluster


class Fix(NamedTuple):
    """A change of every instance, and the advice to make it."""

    advice: str
    change: Callable[[Dict[str, Any]], None]


def fixes(cluster: Cluster) -> List[Fix]:
    """Return them, the smallest first."""
    priorities = sorted({instance.router.priority for instance in cluster.instances}, reverse=True)
    apart = max((high - low for high, low in zip(priorities, priorities[1:])), default=0)
    sources: Dict[str, List[str]] = {instance.name: [] for instance in cluster.instances}
    for instance in cluster.instances:
        sources[instance.name].append(instance.router.source)
    return [
        Fix(
            f"make the weight larger than {apart}, the distance of the priorities, or 0 (FAULT)",
            lambda instance: _set_weight(instance, apart + 1),
        ),
        Fix("set the weight to 0 (FAULT)", lambda instance: _set_weight(instance, 0)),
        Fix("let the members preempt", lambda instance: instance.update(preempt=True)),
        Fix(
            "track the service on every member, without a weight (FAULT)",
            lambda instance: instance.update(track_files=[{"name": "service", "weight": 0}]),
        ),
        Fix(
            "name all the other members as peers of each",
            lambda instance: instance.update(
                peers=[source for source in sources[instance["name"]] if source != instance["source"]]
            ),
        ),
    ]


def _set_weight(instance: Dict[str, Any], weight: int) -> None:
    """Change the weight of what has one."""
    for item in [item for kind in TRACKING for item in instance[kind] if item["weight"]]:
        item["weight"] = -weight if item["weight"] < 0 else weight
