# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the two engines are called on a host: their units, users and programs. Pure."""

from __future__ import annotations

from typing import Any, Collection, Mapping, NamedTuple

from .._agent.proxy.settings import WORKER
from . import pods

VRRP, PROXY, FOLLOW, DIRECT, ANYCAST = "vrrp", "proxy", "follow", "direct", "anycast"  # the agent's daemons
HAPROXY, KEEPALIVED = "haproxy", "keepalived"  # the programs of the native engine
FRR, FRR_UNIT, BGPD_PID = "frr", "frr.service", "/run/frr/bgpd.pid"
# RFC 5881, section 4, its Echo packets, and RFC 5883, section 5, for a peer that is further away.
BFD_PORT, BFD_ECHO_PORT, BFD_MULTIHOP_PORT = 3784, 3785, 4784


class Daemon(NamedTuple):
    """A daemon of the agent, by its name on the command line. Everything else is named after it."""

    name: str

    @property
    def program(self) -> str:
        """Also its user, and its name in `ps` and `killall`: 15 characters at most."""
        return f"onprem-lb-{self.name}"

    @property
    def unit(self) -> str:
        return f"{self.program}.service"

    @property
    def status_socket(self) -> str:
        return f"/run/{self.program}/status.sock"


class Units(NamedTuple):
    """The systemd units of an engine."""

    balancer: str
    router: str


# In the order in which they start: a host serves before it takes a VIP.
DAEMONS = (Daemon(PROXY), Daemon(VRRP))

NATIVE, AGENT, AUTO = "native", "agent", "auto"
ENGINES = (AUTO, NATIVE, AGENT)
UNITS = {
    NATIVE: Units(f"{HAPROXY}.service", f"{KEEPALIVED}.service"),
    AGENT: Units(Daemon(PROXY).unit, Daemon(VRRP).unit),
}
# Which configuration each of them reads, unless a user has set another path.
CONFIGS = {
    UNITS[NATIVE].balancer: "/etc/haproxy/haproxy.cfg",
    UNITS[NATIVE].router: "/etc/keepalived/keepalived.conf",
    UNITS[AGENT].balancer: "/etc/onprem-lb-agent/proxy.json",
    UNITS[AGENT].router: "/etc/onprem-lb-agent/vrrp.json",
}
HOOK = "/usr/local/lib/onprem-lb-keepalived/hook"  # of keepalived's unit, which resigns for one that was killed
# How they come to a host: as systemd units, or as static pods of its kubelet, with the same names for both engines.
UNIT, POD = "unit", "pod"
PODS = Units(pods.BALANCER, pods.ROUTER)
ROUTERS = (*(units.router for units in UNITS.values()), PODS.router)
# The balancer's processes, as they are called among listeners, and the command that tells whether they are alive.
PROGRAMS = {NATIVE: (HAPROXY,), AGENT: (Daemon(PROXY).program, WORKER)}
ALIVE = {engine: f"/usr/bin/killall -0 {programs[0]}" for engine, programs in PROGRAMS.items()}
# All processes that end when an engine is replaced; the router's first.
REPLACED = {NATIVE: (KEEPALIVED, HAPROXY), AGENT: (Daemon(VRRP).program, *PROGRAMS[AGENT]), "": ()}
# The unit that each program of a balancer runs in.
_UNIT_OF = {program: UNITS[engine].balancer for engine, programs in PROGRAMS.items() for program in programs}


def is_own(listener: Mapping[str, Any], programs: Collection[str]) -> bool:
    """Whether a listening socket belongs to one of some programs. In others' container, or another unit, it does not.

    All that is in the balancer's pod is its own, whatever it is called there: the agent is its Python.

    :param listener: as `host_info` returns it
    """
    program, where = listener["program"], listener.get("runs_in", "")
    return where == PODS.balancer or (program in programs and where in ("", _UNIT_OF.get(program, where)))
