# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What has become of the sections of an haproxy.cfg while it is converted."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from ..model import peers
from ..model import services as services_of
from .sections import Inexpressible, Line, Section, lineage

BASES = ("ca-base", "crt-base")
# How a line names a frontend or a backend: the table of one, or the argument of what counts its connections.
REFERENCE = re.compile(r"(?:\btable\s+|[(,]\s*)([\w.:-]+)(?=[\s,)]|$)")


class Work:
    """The sections, and what has become of each."""

    def __init__(self, sections: List[Section]) -> None:
        self.sections = sections
        self.services: List[Dict[str, Any]] = []
        self.expressed: List[Section] = []
        self.raw: List[str] = []
        self.lost: List[str] = []
        self.notes: List[str] = []
        self.variables: Dict[str, Any] = {}
        self.bases = {key: value for key in BASES for section in self.of("global") for value in section.values(key)}
        self.main = _main_defaults(sections)
        lines = [line for section in sections for line in section.lines]
        self.named = {name: line for line in reversed(lines) for name in REFERENCE.findall(line.text)}

    def services_read(self) -> List[Dict[str, Any]]:
        return services_of.read_services(self.services, "")[0]

    def with_tables(self) -> List[str]:
        """Return the services whose stick tables the role writes."""
        return [each["name"] for each in self.services_read() if peers.has_tables([each])]

    def of(self, *kinds: str) -> List[Section]:
        return [section for section in self.sections if section.kind in kinds]


def _main_defaults(sections: List[Section]) -> List[Line]:
    """Return the lines of the defaults that count for most of what listens."""
    found: List[List[Line]] = []
    for section in sections:
        if section.kind in ("listen", "frontend", "backend"):
            try:
                found.append(lineage(sections, section))
            except Inexpressible:
                continue  # it is said where the section is converted
    return max(found, key=found.count, default=[])
