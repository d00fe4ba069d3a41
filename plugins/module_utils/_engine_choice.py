# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which engine a host gets: HAProxy and keepalived where it can have them, the embedded agent where it cannot. Pure."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils import _host
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import crew
from ansible_collections.onprem.lb.plugins.module_utils._engine_units import PROXY, VRRP, Daemon

NATIVE, AGENT, AUTO = "native", "agent", "auto"
ENGINES = (AUTO, NATIVE, AGENT)
UNITS = {
    NATIVE: ("haproxy.service", "keepalived.service"),
    AGENT: (Daemon(PROXY).unit, Daemon(VRRP).unit),
}
# What an engine's balancer is called among those who listen, and how its life is asked for.
PROGRAMS = {NATIVE: ("haproxy",), AGENT: (Daemon(PROXY).program, crew.NAME)}
ALIVE = {engine: f"/usr/bin/killall -0 {programs[0]}" for engine, programs in PROGRAMS.items()}


class Choice(NamedTuple):
    """An engine, and why it is this one."""

    engine: str
    reason: str


def choose(wanted: str, host: Dict[str, Any], prefix: str) -> Choice:
    """Return what a host gets.

    :param host: as `host_info` returns it
    :param prefix: of the layout's variables, in one of which the user may name an engine
    """
    if wanted != AUTO:
        return Choice(wanted, f"{prefix}_engine names it")
    running = host.get("active_units", [])
    if not set(UNITS[NATIVE]) & set(running) and set(UNITS[AGENT]) & set(running):
        return Choice(AGENT, "it runs here already")
    family, missing = host.get("os_family"), ", ".join(host.get("missing_packages", []))
    if family and family not in _host.FAMILIES:
        return Choice(AGENT, f"this is {family}, whose packages the roles do not know")
    if not missing:
        return Choice(NATIVE, "its packages are installed")
    if host.get("unobtainable"):
        return Choice(AGENT, f"{missing} cannot be installed: {host['unobtainable']}")
    return Choice(NATIVE, f"{missing} can be installed")


def in_the_way(engine: str, host: Dict[str, Any], prefix: str) -> str:
    """Return a sentence where the other engine's router runs: two on one host would fight. '' otherwise."""
    other = NATIVE if engine == AGENT else AGENT
    router = UNITS[other][1]
    if router not in host.get("active_units", []):
        return ""
    return (
        f"{router} runs here, which is the engine {other}, and {prefix}_engine makes it {engine}: "
        f"take the old one away first ({prefix}_state: absent, for this member alone)."
    )
