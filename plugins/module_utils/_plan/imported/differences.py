# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What differs once an haproxy.cfg is converted, and what a run would refuse of it. Pure."""

from __future__ import annotations

import re
from typing import Optional

from ..model import haproxy as model
from ..model import services as services_of
from . import peering
from .work import Work

STATS_NAME = "haproxy_stats"
STATS_PORT = model.STATS["port"].default


def note(work: Work) -> None:
    """Say what is not as it was, and what a run would refuse."""
    left = [each for each in work.sections if each not in work.expressed and each.kind != "global"]
    gone = [each for each in work.sections if each not in left or each.kind == "defaults"]
    if any("#" in text for each in gone for text in each.texts):
        work.notes.append("Comments are left out where lines became keys.")
    named = services_of.resolved_names(work.services_read())
    if named:
        work.notes.append(f"{', '.join(named)}: the role resolves names while HAProxy runs, and not only as it starts.")
    shared = work.with_tables()
    if shared:
        work.notes.append(f"{', '.join(shared)}: the members tell each other their stick tables, which begin empty.")
    limited = [each["name"] for each in work.services if "rate_limit" in each]
    if limited:
        who = "the host itself is not limited, and neither are the members of a pair"
        work.notes.append(f"{', '.join(limited)}: {who}.")
    taken = _taken(STATS_PORT, work)
    if taken is not None:
        work.variables["haproxy_stats_enabled"] = False
        work.notes.append(f"line {taken} is in the way of the role's own statistics page, which is switched off.")
    for section in left:
        if section.kind == peering.KIND:
            work.notes.append(f"line {section.number}: the names of peers must be the members' host names.")
    given = {name[len("haproxy_") :]: value for name, value in work.variables.items()}
    settings = model.settings_of({**given, "services": work.services})
    work.notes += [f"A run refuses this: {fault}" for fault in model.model(settings, [], "")["faults"]]


def _taken(port: int, work: Work) -> Optional[int]:
    """Return the line that listens on the port of the statistics page, or has its name."""
    named = next((each.number for each in work.sections if each.name.startswith(STATS_NAME)), None)
    if named is not None:
        return named
    pattern = re.compile(rf"\bbind\b.*:{port}\b")
    return next(
        (line.number for each in work.sections for line in each.having("bind") if pattern.search(line.text)), None
    )
