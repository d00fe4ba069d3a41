# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The memberships of all labels that are followed: masters and routers are other nodes of one cluster. Pure."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from .addressing import Answering
from .membership import Known, Membership
from .nodes import Node
from .settings import Server, Settings, Target

Servers = Tuple[Server, ...]


def labels(settings: Settings) -> List[str]:
    """Return the labels of the nodes that are servers, each once."""
    haproxy = settings.haproxy.backends if settings.haproxy else ()
    targets = [*haproxy, *(settings.proxy.services if settings.proxy else ())]
    return list(dict.fromkeys(target.label or settings.nodes.label for target in targets)) or [settings.nodes.label]


def of_label(settings: Settings, label: str) -> Settings:
    """Return the settings with only the backends and services that have the nodes of a label."""

    def mine(targets: Tuple[Target, ...]) -> Tuple[Target, ...]:
        return tuple(target for target in targets if (target.label or settings.nodes.label) == label)

    haproxy, proxy = settings.haproxy, settings.proxy
    backends, services = mine(haproxy.backends) if haproxy else (), mine(proxy.services) if proxy else ()
    return settings._replace(
        haproxy=haproxy._replace(backends=backends) if haproxy and backends else None,
        proxy=proxy._replace(services=services) if proxy and services else None,
    )


class Groups:
    """Mutable: the nodes of each label."""

    def __init__(self, settings: Settings, known: Mapping[str, Known], present: Callable[[str], Servers]) -> None:
        """
        :param known: by label
        :param present: returns the servers that the balancers have for a label of which nothing is known
        """
        every = labels(settings)
        changed = any(label not in every for label in known)
        self._of = {
            label: Membership(
                settings.nodes._replace(label=label),
                known[label] if label in known else Known(present(label)),
                relabelled=changed and label not in known,
                of_balancer=label not in known,
            )
            for label in every
        }

    def replace(self, listed: Iterable[Node], now: int) -> bool:
        """Take a complete list; return whether that may change the servers."""
        nodes = tuple(listed)
        counts = [each.replace(nodes, now) for each in self._of.values()]
        return any(counts)

    def change(self, node: Node, now: int) -> bool:
        """Take a node that is new or has changed; return whether that may change the servers."""
        counts = [each.change(node, now) for each in self._of.values()]
        return any(counts)

    def remove(self, name: str) -> bool:
        """Take the end of a node; return whether that may change the servers."""
        counts = [each.remove(name) for each in self._of.values()]
        return any(counts)

    def decide(self, now: int, answering: Callable[[str], Answering]) -> Dict[str, Known]:
        """Return the servers that there should be now, by label.

        :param answering: returns what `Membership.decide` takes, for a label
        """
        return {label: each.decide(now, answering(label)) for label, each in self._of.items()}

    def due(self) -> Optional[int]:
        """Return when to decide again although nothing has happened, None if that is never."""
        times = [each.due() for each in self._of.values()]
        return min((time for time in times if time is not None), default=None)

    def problem(self) -> Optional[str]:
        """Return which servers stay although a list says that they do not."""
        found = [(label, each.problem()) for label, each in self._of.items()]
        return " ".join(self._of_label(label, text) for label, text in found if text) or None

    def report(self) -> Dict[str, Any]:
        """Return what a status says of the nodes."""
        kept: List[Dict[str, str]] = [each._asdict() for group in self._of.values() for each in group.kept()]
        return {
            "label": ", ".join(self._of),
            "nodes": sum(map(len, self._of.values())),
            "kept": kept,
            "without_address": sorted({name for group in self._of.values() for name in group.without_address()}),
        }

    def _of_label(self, label: str, text: str) -> str:
        return text if len(self._of) == 1 else f"{label}: {text}"
