# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which engine a host gets: HAProxy and keepalived where they can be installed, the embedded agent elsewhere. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ansible_collections.onprem.lb.plugins.module_utils._shared import platforms
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import (
    AGENT,
    AUTO,
    NATIVE,
    UNITS,
)


class Choice(NamedTuple):
    """An engine, and the reason for it."""

    engine: str
    reason: str
    replaces: str = ""  # the engine that it replaces on this host


def choose(wanted: str, host: Dict[str, Any], prefix: str) -> Choice:
    """Return the engine of a host.

    :param host: as `host_info` returns it
    :param prefix: of the layout's variables, in one of which the user may name an engine
    """
    choice = _choose(wanted, host, prefix)
    other = NATIVE if choice.engine == AGENT else AGENT
    # Also where it no longer runs: the run completes a migration that was interrupted.
    is_there = set(UNITS[other]) & set(host.get("own_units", []))
    return choice._replace(replaces=other if is_there else "")


def _choose(wanted: str, host: Dict[str, Any], prefix: str) -> Choice:
    if wanted != AUTO:
        return Choice(wanted, f"{prefix}_engine names it")
    running = host.get("active_units", [])
    if not set(UNITS[NATIVE]) & set(running) and set(UNITS[AGENT]) & set(running):
        return Choice(AGENT, "it runs here already")
    family, missing = host.get("os_family"), ", ".join(host.get("missing_packages", []))
    if family and family not in platforms.FAMILIES:
        return Choice(AGENT, f"this is {family}, whose packages the roles do not know")
    if not missing:
        return Choice(NATIVE, "its packages are installed")
    if host.get("unobtainable"):
        return Choice(AGENT, f"{missing} cannot be installed: {host['unobtainable']}")
    return Choice(NATIVE, f"{missing} can be installed")


def migration_order(choices: Mapping[str, Choice], held: Mapping[str, int]) -> List[str]:
    """Return the members that change their engine, in the order in which they migrate, one after the other.

    The members that hold a VIP come last: then all the others can take it over, and it moves once.

    :param held: how many VIPs each member carries now
    """
    changing = [name for name, choice in choices.items() if choice.replaces]
    return sorted(changing, key=lambda name: held[name])


def table(choices: Mapping[str, Choice], order: Sequence[str]) -> List[str]:
    """Return a line for each member: its engine, the reason, and the engine that it replaces."""
    lines = []
    for name, choice in choices.items():
        line = f"{name}: {choice.engine}, {choice.reason}"
        if choice.replaces:
            line += f"; in place of {choice.replaces}, as number {order.index(name) + 1} of {len(order)}"
        lines.append(line)
    return lines
