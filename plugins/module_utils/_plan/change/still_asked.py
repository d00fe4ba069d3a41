# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which ports a balancer keeps during a run: make before break. Pure.

The router's checks, `onprem-lb-answers.service` and the redirect of the API's VIPs use ports of the balancer, and they
change after it. So the balancer first listens on the ports of the plan and on those that are still in use. Then its
users change. Once the run is proved, the balancer drops the ports that nothing uses any more.

What is in use is read from the host. Only a port on which the balancer itself listens counts: none is taken from
another program.
"""

from __future__ import annotations

from typing import Any, Callable, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from ..._agent.config.schema import Faults
from ..._shared.engines import PROGRAMS, is_own
from ..members import openings
from ..members.engine_choice import Choice
from ..model import answers, url_checks
from ..model.plan import Balancer, Meanwhile, Router
from ..model.services import listeners

Item = Dict[str, Any]


class Asked(NamedTuple):
    """What is asked of the balancer that runs on a member."""

    checks: Sequence[Mapping[str, Any]] = ()  # ``{name, address, port, path, tls, answered}``
    redirects: Sequence[Mapping[str, Any]] = ()  # ``{port, to}``


class Answers(NamedTuple):
    """How a layout's balancer answers at a port that is not the plan's; None if the layout has nothing of that name."""

    # A monitor, by the name of a check, and the port and path that it asks for.
    monitor: Callable[[str, int, str], Optional[Item]] = lambda _name, _port, _path: None
    # A service with its name in the plan, by the port of the VIPs and the one to which it is redirected.
    service: Callable[[int, int], Optional[Item]] = lambda _port, _to: None


def asked(member: Mapping[str, Any], choice: Choice) -> Asked:
    """Return what is asked of the balancer that runs on a member; nothing if the run leaves it as it is.

    :param member: as in `planner`
    """
    host, programs = member["host"], PROGRAMS[choice.replaces or choice.engine]
    answered = {each["port"] for each in host.get("listeners", []) if is_own(each, programs)}
    found = {} if member.get("outside_limit") else host.get("asking", {})
    return Asked(
        [each for each in found.get("checks", []) if each["port"] in answered],
        [each for each in found.get("redirects", []) if each["to"] in answered],
    )


def to_keep(planned: Balancer, known: Asked, layout: Answers) -> Balancer:
    """Return what a balancer keeps beside the plan while something still asks for it; an empty one if nothing does."""
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


def meanwhile(
    planned: Balancer, kept: Balancer, clients: openings.Clients, router: Router, others: Collection[str] = ()
) -> Optional[Meanwhile]:
    """Return what a member has until the users of its balancer's ports have changed; None if it has to keep none.

    :param clients: of the planned one
    :param others: as `openings.firewall` takes them
    """
    if kept == Balancer():
        return None
    both = planned._replace(
        services=[*planned.services, *kept.services],
        monitors=[*planned.monitors, *kept.monitors],
        also_answers=kept.also_answers,
    )
    return Meanwhile(both, openings.firewall({**openings.of_listeners(kept.services), **clients}, router, others))


def to_answer(known: Asked, kept: Balancer, router: Router) -> List[Item]:
    """Return the questions of now that the plan's balancer has to answer.

    What is kept answers those that nobody asks afterwards. What is not answered now takes nobody out of the election
    who is not out of it already.

    :param router: the planned one
    """
    only_now = {each["port"] for each in listening(kept)}
    goes_on = {(script["name"], port) for script in router.scripts for port in _ports(script)}
    return [
        {**each}
        for each in known.checks
        if each["answered"] and (each["port"] not in only_now or (each["name"], each["port"]) in goes_on)
    ]


def _ports(script: Mapping[str, Any]) -> Set[int]:
    """Return the ports that a check asks, also by the URLs of a command."""
    asked = [url.group() for url in url_checks.URL.finditer(str(script.get("command") or ""))]
    return url_checks.ports([*script.get("any_of", []), asked])


def listening(kept: Balancer) -> List[Item]:
    return [*kept.services, *kept.monitors, *answers.kept(kept.also_answers)]


def faults(planned: Balancer, kept: Balancer, name: str) -> Faults:
    """Refuse a port that is in use for something else than the plan has there.

    :param name: of the member
    """
    taken, found = _taken(planned), []
    for each in listening(kept):
        port = each["port"]
        if port in taken:
            found.append(
                f"{name}: port {port} is {taken[port]} in the plan, and in use as {each['name']} until the end of this "
                "run: choose another port, or change one of the two in a run of its own."
            )
        taken.setdefault(port, each["name"])
    return found


def _taken(planned: Balancer) -> Dict[int, str]:
    """Return by port what the plan has there."""
    named = [*listeners(planned.services), *planned.monitors, *answers.monitors(planned.answer_port)]
    found = {each["port"]: each["name"] for each in named}
    return {**({planned.stats_port: "the statistics page"} if planned.stats_port else {}), **found}
