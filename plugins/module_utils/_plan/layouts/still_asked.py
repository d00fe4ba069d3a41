# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a balancer goes on listening during a run: new before old. Pure.

The router's checks, what asks beside keepalived and the redirect of the API's VIPs name ports of the balancer, and they
change after it. So the balancer first listens at the ports of the plan and at those that are still asked. Then whoever
asks changes. Once the run is proved, the balancer drops what nobody asks any more.

What is asked is read from the host, and only what the balancer there answers counts: it is taken from no other program.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.config.schema import Faults
from ..._shared.engines import is_own
from ..model import answers
from ..model.plan import Balancer, Meanwhile, Router
from ..model.services import listeners
from . import openings

Item = Dict[str, Any]


class Asked(NamedTuple):
    """What is asked of the balancer that runs on a member."""

    checks: Sequence[Mapping[str, Any]] = ()  # ``{name, port, path}``
    redirects: Sequence[Mapping[str, Any]] = ()  # ``{port, to}``


class Answers(NamedTuple):
    """How a layout's balancer answers at another port than the plan's; nothing of what is none of the layout's."""

    # By the name of a check, and the port and path at which it asks.
    monitor: Callable[[str, int, str], Optional[Item]] = lambda _name, _port, _path: None
    # By a port of the VIPs that is redirected, and where it leads: the service there, under its name in the plan.
    service: Callable[[int, int], Optional[Item]] = lambda _port, _to: None


def asked(host: Mapping[str, Any], programs: Sequence[str]) -> Asked:
    """Return what is asked of a balancer.

    :param host: as `host_info` returns it
    :param programs: those of the balancer that runs there
    """
    answered = {each["port"] for each in host.get("listeners", []) if is_own(each, programs)}
    found = host.get("asking", {})
    return Asked(
        [each for each in found.get("checks", []) if each["port"] in answered],
        [each for each in found.get("redirects", []) if each["to"] in answered],
    )


def more(planned: Balancer, known: Asked, layout: Answers) -> Balancer:
    """Return what a balancer has to have beside the plan's while others still ask it; an empty one for nothing."""
    if not planned.services:
        return Balancer()
    ports = {each["port"] for each in known.checks if each["name"] == answers.NAME} - {planned.answer_port}
    there = [(each["port"], each["path"]) for each in planned.monitors]
    monitors = [
        layout.monitor(each["name"], each["port"], each["path"])
        for each in known.checks
        if (each["port"], each["path"]) not in there
    ]
    services = [_service(planned, layout, each["port"], each["to"]) for each in known.redirects]
    return Balancer(services=_once(services), monitors=_once(monitors), also_answers=sorted(ports))


def _service(planned: Balancer, layout: Answers, port: int, to: int) -> Optional[Item]:
    """Return the service to which the redirect of a port still leads, with the servers that the plan knows."""
    found = layout.service(port, to)
    own = next((each for each in planned.services if found and each["name"] == found["name"]), found)
    if own is None or (own is not found and own["port"] == to):
        return None
    return {**own, "name": f"{own['name']}-{to}", "port": to}


def _once(found: Iterable[Optional[Item]]) -> List[Item]:
    result: List[Item] = []
    for each in found:
        if each is not None and each not in result:
            result.append(each)
    return result


def meanwhile(planned: Balancer, besides: Balancer, clients: openings.Clients, router: Router) -> Optional[Meanwhile]:
    """Return what a member has until whoever asks its balancer has changed; None if the plan answers all of them.

    :param clients: of the planned one
    """
    if besides == Balancer():
        return None
    both = planned._replace(
        services=[*planned.services, *besides.services],
        monitors=[*planned.monitors, *besides.monitors],
        also_answers=besides.also_answers,
    )
    return Meanwhile(both, openings.firewall({**openings.of_listeners(besides.services), **clients}, router))


def listening(besides: Balancer) -> List[Item]:
    return [*besides.services, *besides.monitors, *answers.kept(besides.also_answers)]


def faults(planned: Balancer, besides: Balancer, name: str) -> Faults:
    """Refuse a port that is still asked for something else than the plan has there.

    :param name: of the member
    """
    taken, found = _taken(planned), []
    for each in listening(besides):
        port = each["port"]
        if port in taken:
            found.append(
                f"{name}: port {port} is {taken[port]} in the plan, and is asked for {each['name']} until this run has "
                "changed who asks: choose another port, or change one of the two in a run of its own."
            )
        taken.setdefault(port, each["name"])
    return found


def _taken(planned: Balancer) -> Dict[int, str]:
    """Return by port what the plan has there."""
    named = [*listeners(planned.services), *planned.monitors, *answers.monitors(planned.answer_port)]
    found = {each["port"]: each["name"] for each in named}
    return {**({planned.stats_port: "the statistics page"} if planned.stats_port else {}), **found}
