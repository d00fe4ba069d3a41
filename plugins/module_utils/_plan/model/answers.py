# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a balancer that hangs is noticed: its process is there, and it serves nobody. Pure.

`killall -0` finds such a process. So the balancer is also asked itself, at a port of 127.0.0.1, by a process that runs
all the time and knows when it was itself late:

- haproxy answers there as at its runtime socket. A frontend would not do: while haproxy has all the connections that it
  may have, it accepts none there, and an overloaded member would lose its VIPs to the next one to be overloaded.
- the agent answers there with a monitor, which takes no part in its limit of connections.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ..._agent.config.schema import Field, integer
from ..._shared.engines import AGENT
from .plan import Router

NAME = "haproxy_answers"  # of keepalived's track file, and of the agent's check
FILE = "/run/onprem-lb-haproxy.silent"  # the track file
PORT = 9444
PORT_FIELD = Field(integer(0, 65535, "a port (0 for none)"), 0)
ADDRESS = "127.0.0.1"
# Two answers that are late by this much are no busy moment. The VIP leaves within 3 s: the first of them is asked for
# within one interval, the second one interval later.
INTERVAL, LIMIT, COUNT = 1, 0.5, 2
TIMES = {"interval": INTERVAL, "timeout": LIMIT, "rise": COUNT, "fall": COUNT}
LARGEST = 253  # of the weights that are no FAULT
TIMED = {"name": NAME, **TIMES}  # how long the file takes to say it


def scripts(engine: str, port: int) -> List[Dict[str, Any]]:
    """Return the check of a router that asks the balancer itself: that of the agent."""
    return [{"name": NAME, **TIMES, "any_of": [[f"http://{ADDRESS}:{port}/"]]}] if port and engine == AGENT else []


def track_files(engine: str, port: int) -> List[Dict[str, Any]]:
    """Return the file by which keepalived learns it from a process that asks all the time."""
    return [{"name": NAME, "path": FILE}] if port and engine != AGENT else []


def weight(priorities: Sequence[int], preempt: bool) -> int:
    """Return what a balancer that does not answer adds to its member's priority; 0 is a FAULT.

    Any member that answers then has more than any that does not: the VIP moves to one that answers. Those that do not
    keep their order, so that it stays where none answers. Priorities that are too far apart have no room for that, and
    need more of it where nobody preempts: see `offers.patience`.
    """
    distance, room = max(priorities) - min(priorities), min(priorities) - 1
    if room > distance:
        return -room
    return -(distance + 1) if room and preempt and distance < LARGEST else 0


def tracked(engine: str, port: int, change: int) -> Dict[str, List[Dict[str, Any]]]:
    """Return what an instance tracks.

    :param change: of the priority; 0 where that counts for nothing, as in a sync group: there a failure is a FAULT
    """
    found = [{"name": NAME, "weight": change}] if port else []
    own = "track_scripts" if engine == AGENT else "track_files"
    return {"track_scripts": [], "track_files": [], own: found}


def unasked(router: Router) -> Router:
    """Return a router that does not ask: its balancer is not set up again, and may have no port for it yet."""
    instances = [
        {
            **each,
            **{
                kind: [item for item in each[kind] if item["name"] != NAME] for kind in ("track_scripts", "track_files")
            },
        }
        for each in router.instances
    ]
    own = {
        kind: [each for each in getattr(router, kind) if each["name"] != NAME] for kind in ("scripts", "track_files")
    }
    return router._replace(instances=instances, **own)


def monitors(port: int) -> List[Dict[str, Any]]:
    """Return where a balancer answers, as a monitor; the agent has this monitor."""
    return [{"name": "answer_port", "bind": [ADDRESS], "port": port, "path": "/"}] if port else []
