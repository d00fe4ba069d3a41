# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The paths of a member's pods, on the host and in the containers."""

from __future__ import annotations

from typing import NamedTuple

from ..._shared.engines import ANYCAST, FOLLOW, FRR, HAPROXY, KEEPALIVED, NATIVE, PROXY, VRRP, Daemon
from ..._shared.pods import RESOURCES
from ..layouts import follow
from .manifests import CREATED, DIRECTORY, Volume

AGENT, SIDECAR = "agent", "sidecar"
ARCHIVE, ALIVE_SCRIPT = "agent.pyz", "alive.sh"


class Part(NamedTuple):
    """A folder of RESOURCES.

    :ivar inside: where containers see it
    """

    name: str
    inside: str

    @property
    def on_host(self) -> str:
        return f"{RESOURCES}/{self.name}"

    def volume(self, writable: bool = False) -> Volume:
        return Volume(self.name, self.inside, self.on_host, read_only=not writable)


PARTS = {
    HAPROXY: Part(HAPROXY, "/etc/haproxy"),
    # keepalived 2.3 reads a file of its package in /etc/keepalived, and does not start without it.
    KEEPALIVED: Part(KEEPALIVED, "/etc/onprem-lb-keepalived"),
    AGENT: Part(AGENT, "/usr/local/lib/onprem-lb-agent"),
    **{name: Part(name, f"/etc/onprem-lb-agent/{name}") for name in (PROXY, VRRP, ANYCAST, SIDECAR)},
    FRR: Part(FRR, "/etc/frr"),
    FOLLOW: Part(FOLLOW, follow.FOLDER),
}
AGENT_COMMAND = ["python3", "-I", f"{PARTS[AGENT].inside}/{ARCHIVE}"]

# The balancer's container holds its FIFO, which the sidecar in the router's pod reads.
SHARED = Volume("shared", "/run/onprem-lb", "/run/onprem-lb", CREATED, read_only=False)
BALANCER_FIFO = f"{SHARED.path}/balancer"
# What the containers of the router's pod share. At /run itself some container runtimes have a folder of their own.
RUN = Volume("run", f"/run/{Daemon(VRRP).program}", read_only=False)
TMP = Volume("tmp", "/tmp", read_only=False)
ROUTER_FIFO, NOTIFY_FIFO = f"{RUN.path}/held", f"{RUN.path}/changes"
PID_FILE, VRRP_PID_FILE = f"{RUN.path}/keepalived.pid", f"{RUN.path}/vrrp.pid"
DOWN_FILE = f"{RUN.path}/haproxy.down"


HAPROXY_CONFIG, HAPROXY_SOCKET = f"{PARTS[HAPROXY].inside}/haproxy.cfg", "/run/haproxy/admin.sock"
PROXY_CONFIG = f"{PARTS[PROXY].inside}/{PROXY}.json"
KEEPALIVED_CONFIG = f"{PARTS[KEEPALIVED].inside}/keepalived.conf"
VRRP_CONFIG = f"{PARTS[VRRP].inside}/{VRRP}.json"
GATE_CONFIG = f"{PARTS[ANYCAST].inside}/{ANYCAST}.json"


def own_runtime(daemon: str) -> Volume:
    """Return a daemon's folder of /run."""
    return Volume("runtime", f"/run/{Daemon(daemon).program}", read_only=False)


def runtime(engine: str, shared: bool) -> Volume:
    """Return the folder with the socket of a balancer. It is the host's where another pod uses that."""
    folder = "/run/haproxy" if engine == NATIVE else f"/run/{Daemon(PROXY).program}"
    host, kind = (f"{SHARED.host}-{engine}", CREATED) if shared else ("", DIRECTORY)
    return Volume("balancer-runtime", folder, host, kind, read_only=False)
