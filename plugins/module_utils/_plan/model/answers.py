# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a balancer that hangs is noticed: its process is there, and it serves nobody. Pure.

`killall -0` finds such a process. So the router also asks the balancer itself, at a port of 127.0.0.1:

- haproxy answers there as at its runtime socket. A frontend would not do: while haproxy has all the connections that it
  may have, it accepts none there, and an overloaded member would lose its VIPs to the next one to be overloaded.
- the agent answers there with a monitor, which takes no part in its limit of connections.
"""

from __future__ import annotations

from typing import Any, Dict, List

from ..._agent.config.schema import Field, integer
from ..._shared.engines import AGENT
from .plan import Router

NAME = "haproxy_answers"  # of the script
PORT = 9444
PORT_FIELD = Field(integer(0, 65535, "a port (0 for none)"), 0)
ADDRESS = "127.0.0.1"
# Two answers that are late by this much are no busy moment. The VIP leaves within 3 s: the first of them is asked for
# within one interval, the second one interval later.
INTERVAL, LIMIT, COUNT = 1, 0.5, 2


def script(engine: str, port: int) -> Dict[str, Any]:
    """Return the check of the VRRP router that asks the balancer of an engine.

    bash connects by itself, so that a host needs no program for it. It waits for a connection without a limit, and
    keepalived, which looks once a second, would end it late: so `timeout` does.
    """
    same = {"name": NAME, "interval": INTERVAL, "timeout": LIMIT, "rise": COUNT, "fall": COUNT}
    if engine == AGENT:
        return {**same, "any_of": [[f"http://{ADDRESS}:{port}/"]]}
    asks = f"exec 3<>/dev/tcp/{ADDRESS}/{port} && echo show info >&3 && read -r line <&3"
    return {**same, "command": f"/usr/bin/timeout {LIMIT} /usr/bin/bash -c '{asks}'"}


def unasked(router: Router) -> Router:
    """Return a router that does not ask: its balancer is not set up again, and may have no port for it yet."""
    instances = [
        {**each, "track_scripts": [item for item in each["track_scripts"] if item["name"] != NAME]}
        for each in router.instances
    ]
    scripts = [each for each in router.scripts if each["name"] != NAME]
    return router._replace(instances=instances, scripts=scripts)


def monitors(port: int) -> List[Dict[str, Any]]:
    """Return where a balancer answers, as a monitor; the agent has this monitor."""
    return [{"name": "answer_port", "bind": [ADDRESS], "port": port, "path": "/"}] if port else []
