# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Label selectors, as the API server evaluates them, for a watch of nodes with and without the label. Pure.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

from __future__ import annotations

import re
from typing import Any, FrozenSet, Mapping, NamedTuple, Optional, Tuple

_KEY = r"(?:[A-Za-z0-9][A-Za-z0-9.-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*"
_VALUE = r"[A-Za-z0-9._-]*"
REQUIREMENT = re.compile(
    rf"\s*(?:!\s*(?P<absent>{_KEY})"
    rf"|(?P<key>{_KEY})(?:\s*(?P<sign>==?|!=)\s*(?P<value>{_VALUE})"
    rf"|\s+(?P<word>in|notin)\s*\((?P<values>\s*{_VALUE}\s*(?:,\s*{_VALUE}\s*)*)\))?)\s*"
)
COMMA = re.compile(r",(?![^(]*\))")  # between requirements, not between values


class Requirement(NamedTuple):
    """One of those that a node must all meet.

    :ivar values: one of which the label must have; None for any
    """

    key: str
    values: Optional[FrozenSet[str]] = None
    negated: bool = False

    def is_met_by(self, labels: Mapping[str, str]) -> bool:
        has = self.key in labels if self.values is None else labels.get(self.key) in self.values
        return has != self.negated


class Selector(NamedTuple):
    """Which nodes count. Without a requirement all of them do."""

    requirements: Tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """A label that is no text is none: the API server sends no others."""
        texts = {key: value for key, value in labels.items() if isinstance(value, str)}
        return all(each.is_met_by(texts) for each in self.requirements)


def parse(text: str) -> Selector:
    """Read a label selector. Raises ValueError for what is none."""
    return Selector(tuple(_requirement(each) for each in COMMA.split(text)))


def _requirement(text: str) -> Requirement:
    found = REQUIREMENT.fullmatch(text)
    if not found:
        raise ValueError(text)
    if found["absent"]:
        return Requirement(found["absent"], negated=True)
    if found["sign"]:
        return Requirement(found["key"], frozenset([found["value"]]), found["sign"] == "!=")
    if found["word"]:
        values = frozenset(each.strip() for each in found["values"].split(","))
        return Requirement(found["key"], values, found["word"] == "notin")
    return Requirement(found["key"])
