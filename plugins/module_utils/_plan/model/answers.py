# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a member must answer to hold a VIP, and who asks it: a process that runs all the time. Pure.

A check that keepalived starts anew for each run counts its own starvation on a busy host as a failure. This process
knows when it was itself late. A check that fails there lowers the priority, so that the VIP moves to a member whose
checks succeed, and stays where there is none. The agent runs such checks itself, in the same way.

Each check is ``{name, any_of, interval, timeout, rise, fall}``, with one URL. That of the balancer has its
``haproxy_port`` too: haproxy answers there as at its runtime socket. A frontend would not do: while haproxy has all the
connections that it may have, it accepts none there, and an overloaded member would lose its VIPs to the next one to be
overloaded. The agent answers there with a monitor, which takes no part in its limit of connections.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Sequence

from ..._agent.checks.settings import HAPROXY
from ..._agent.config.schema import Field, integer
from ..._shared.engines import AGENT
from . import url_checks
from .plan import Balancer, Router

Check = Dict[str, Any]
NAME = "haproxy_answers"  # of the check that finds a balancer that hangs: its process is there, and it serves nobody
FILE = "/run/onprem-lb-{}.failing"  # keepalived's track file of a check
PORT = 9444
PORT_FIELD = Field(integer(0, 65535, "a port (0 for none)"), 0)
ADDRESS = "127.0.0.1"
# Two answers that are late by this much are no busy moment. The VIP leaves within 3 s: the first of them is asked for
# within one interval, the second one interval later.
TIMES = {"interval": 1, "timeout": 0.5, "rise": 2, "fall": 2}
LARGEST = 253  # of the weights that are no FAULT


def of_balancer(port: int) -> List[Check]:
    """Return the check that asks the balancer itself; none without a port."""
    return [{"name": NAME, **TIMES, "any_of": [[f"http://{ADDRESS}:{port}/"]], "haproxy_port": port}] if port else []


def is_askable(any_of: url_checks.AnyOf) -> bool:
    """Whether it takes no program to ask this."""
    return url_checks.agent_check(any_of) is not None


def scripts(engine: str, checks: Sequence[Check]) -> List[Dict[str, Any]]:
    """Return the checks as those of the router: the agent's."""
    own = checks if engine == AGENT else []
    return [{key: value for key, value in check.items() if key != "haproxy_port"} for check in own]


def track_files(engine: str, checks: Sequence[Check]) -> List[Dict[str, Any]]:
    """Return the files by which keepalived learns what the process says that asks."""
    return [{"name": check["name"], "path": FILE.format(check["name"])} for check in checks if engine != AGENT]


def questions(engine: str, checks: Sequence[Check]) -> List[Dict[str, Any]]:
    """Return what the process asks beside keepalived, as `keepalived.answers.question` takes it."""
    return [
        {"name": each["name"], "file": FILE.format(each["name"]), **as_check(engine, each)}
        for each in checks
        if engine != AGENT
    ]


def as_check(engine: str, check: Check) -> Dict[str, Any]:
    """Return a check as a daemon of the agent has it, which asks a balancer of this engine."""
    port = check.get("haproxy_port") if engine != AGENT else None
    of_haproxy = {"type": HAPROXY, "address": ADDRESS, "port": port}
    how = of_haproxy if port else url_checks.agent_check(check["any_of"]) or {}
    return {"name": check["name"], **{key: check[key] for key in TIMES}, **how}


def weight(priorities: Sequence[int], preempt: bool) -> int:
    """Return what a check that fails adds to its member's priority; 0 is a FAULT.

    It takes all that there is. So a member whose checks succeed has more than any whose checks fail, and these have the
    same: an equal priority never preempts, so the VIP stays with whoever holds it where none is better. A lowest
    priority of 1 leaves no room for that, and where nobody preempts an offer needs more of it: see `offers.patience`.
    """
    distance, room = max(priorities) - min(priorities), min(priorities) - 1
    return -LARGEST if room > distance or (room and preempt) else 0


def tracked(engine: str, checks: Sequence[Check], change: int) -> Dict[str, List[Dict[str, Any]]]:
    """Return what an instance tracks.

    :param change: of the priority; 0 where that counts for nothing, as in a sync group: there a failure is a FAULT
    """
    if engine != AGENT:
        return {"track_scripts": [], "track_files": [{"name": check["name"], "weight": change} for check in checks]}
    offers = {"offers": True} if change else {}
    return {
        "track_scripts": [{"name": check["name"], "weight": change, **offers} for check in checks],
        "track_files": [],
    }


def unasked(router: Router, checks: Sequence[Check], planned: Balancer) -> Router:
    """Return a router that asks its balancer nothing: that is not set up again, and may have no port for it yet.

    :param checks: those that are run all the time
    :param planned: the balancer to which the other checks of the router fit
    """
    ports = {planned.answer_port, *(monitor["port"] for monitor in planned.monitors)}
    asked = {check["name"] for check in checks}
    asked |= {script["name"] for script in router.scripts if ports & url_checks.ports(script.get("any_of", []))}

    def others(items: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        return [item for item in items if item["name"] not in asked]

    instances = [
        {**each, **{kind: others(each[kind]) for kind in ("track_scripts", "track_files")}} for each in router.instances
    ]
    return router._replace(instances=instances, scripts=others(router.scripts), track_files=others(router.track_files))


def monitors(port: int) -> List[Dict[str, Any]]:
    """Return where a balancer answers, as a monitor; the agent has this monitor."""
    return [{"name": "answer_port", "bind": [ADDRESS], "port": port, "path": "/"}] if port else []


def kept(ports: Iterable[int]) -> List[Dict[str, Any]]:
    """Return the same for old ports at which a balancer is still asked."""
    return [{**each, "name": f"answer_port-{port}"} for port in ports for each in monitors(port)]
