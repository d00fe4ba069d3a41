# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the two engines are called on a host: their units, users and programs. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.settings import WORKER

VRRP, PROXY = "vrrp", "proxy"


class Daemon(NamedTuple):
    """One of the two, by its name on the agent's command line. Everything else is called after it."""

    name: str

    @property
    def program(self) -> str:
        """Also its user, and what `ps` and `killall` call it: 15 characters at most."""
        return f"onprem-lb-{self.name}"

    @property
    def unit(self) -> str:
        return f"{self.program}.service"

    @property
    def status_socket(self) -> str:
        return f"/run/{self.program}/status.sock"


# In the order in which they start: a VIP comes when somebody serves it.
DAEMONS = (Daemon(PROXY), Daemon(VRRP))

NATIVE, AGENT, AUTO = "native", "agent", "auto"
ENGINES = (AUTO, NATIVE, AGENT)
UNITS = {
    NATIVE: ("haproxy.service", "keepalived.service"),
    AGENT: (Daemon(PROXY).unit, Daemon(VRRP).unit),
}
# What an engine's balancer is called among those who listen, and how its life is asked for.
PROGRAMS = {NATIVE: ("haproxy",), AGENT: (Daemon(PROXY).program, WORKER)}
ALIVE = {engine: f"/usr/bin/killall -0 {programs[0]}" for engine, programs in PROGRAMS.items()}
# All that goes when an engine is replaced, as it is called among processes; the router first.
REPLACED = {NATIVE: ("keepalived", "haproxy"), AGENT: (Daemon(VRRP).program, *PROGRAMS[AGENT]), "": ()}
