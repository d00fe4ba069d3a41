# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The backends of haproxy.cfg: one for each service and route, and the fallback of those with the usual pace. Pure.

A fallback has the same servers under a check that waits for longer. A frontend uses it while none of them passes the
first check. Where sessions end with their server, the check that waits for longer is the only one.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping

from ..._agent.config.schema import Faults
from ..._agent.proxy import settings
from . import agent_checks, bind_line, line_words, pace, returns, stick, values
from .services import backends

# In raw lines, and in the options of a server.
OWN_PACE = re.compile(r"(^|\s)(inter|fastinter|downinter|fall)\s")
OWN_ANSWER = re.compile(r"\s*timeout\s+check\s")
# Raw lines and options that no two backends may have.
UNIQUE = ("id", "guid")
HOST, SERVER_NAME = "req.hdr(host),field(1,:)", "req.ssl_sni"  # which a client asks for, by HTTP and by TLS

Backend = Dict[str, Any]


def name_of(backend: str) -> str:
    return f"{backend}-fallback"


def with_backends(service: Dict[str, Any], tuning: Mapping[str, Any]) -> Dict[str, Any]:
    """Return a service as the template takes it: with its ``backends``, each with its ``fallback``, '' without one."""
    found = [_backend(each, tuning) for _place, each in backends(service, "")]
    names = {each["name"]: each["fallback"] for each in found}
    host = HOST if service["mode"] == settings.HTTP else SERVER_NAME
    routes = [_route(each, host, names[each["name"]]) for each in service["routes"]]
    second = [_of_fallback(each) for each in found if each["fallback"]]
    own = stick.for_template(service, [each for _place, each in backends(service, "")], bind_line.admission(service))
    fallback = names.get(service["name"], "")
    return {**service, **own, "fallback": fallback, "routes": routes, "backends": [*found, *second]}


def _route(given: Dict[str, Any], host: str, fallback: str) -> Dict[str, Any]:
    asked = line_words.of_requests(given["hosts"], given["paths"], host, fallback)
    return {**given, "asked": asked, "fallback": fallback}


def _backend(given: Mapping[str, Any], tuning: Mapping[str, Any]) -> Backend:
    """Return a backend. Whoever says how its servers are checked keeps the limits of 1.0.0, and has no fallback."""
    lines = [*tuning["defaults_lines"], *given["backend_lines"]]
    answer = values.seconds(tuning["timeout_check"])[0]
    is_limited = answer != pace.ANSWER_S or any(map(OWN_ANSWER.match, lines))
    has_servers = not given["return"]
    is_usual = has_servers and pace.has_fallback(given, answer) and not sets_pace(given, lines) and not is_limited
    check = haproxys(given["check"]) if is_usual else given["check"]
    has_fallback = is_usual and check == given["check"]
    needs_limit = given["check"]["type"] != "none" and not has_fallback and not is_limited
    return {
        **{key: given[key] for key in ("name", "balance", "send_proxy", "sticky", "backend_lines", "servers")},
        "stick_lines": stick.stick_lines(given),
        "check": check,
        "returns": returns.rules(given["return"]),
        "option": agent_checks.option(check),
        "agent": agent_checks.words(check),
        "probes": settings.probes(round(check["tcp_user_timeout"] * settings.MILLION)),
        "timeout_check": pace.LATE if needs_limit else "",
        "fallback": name_of(given["name"]) if has_fallback else "",
    }


def haproxys(check: Dict[str, Any]) -> Dict[str, Any]:
    """Return the check of the first backend, which has the usual pace unless sessions end with it."""
    return pace.of_fallback(check) if check["shutdown_sessions"] else check


def sets_pace(backend: Mapping[str, Any], lines: Iterable[str]) -> bool:
    """Return whether raw lines, or the options of a server, say how often servers are checked."""
    options = [option for server in backend["servers"] for option in server["options"]]
    return any(OWN_PACE.search(f"{line} ") for line in [*lines, *options])


def _of_fallback(backend: Backend) -> Backend:
    servers = [{**server, "options": [*_repeatable(server["options"])]} for server in backend["servers"]]
    return {
        **backend,
        "name": backend["fallback"],
        "fallback": "",
        "check": pace.of_fallback(backend["check"]),
        "timeout_check": pace.LATE,
        "backend_lines": [*_repeatable(backend["backend_lines"])],
        "servers": servers,
    }


def _repeatable(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if line.split()[:1] != [] and line.split()[0] not in UNIQUE)


def names_taken(services: List[Dict[str, Any]], monitors: List[Dict[str, Any]], place: str) -> Faults:
    """Return a sentence for each service, route or monitor with the name of another one's fallback."""
    every = [backend for service in services for _place, backend in backends(service, "")]
    taken = {each["name"] for each in [*every, *monitors]}
    return [
        f"{place} has the name '{name_of(each['name'])}', which HAProxy's fallback of {each['name']} has: "
        "choose another one."
        for each in every
        if not each["return"] and pace.may_have_second_backend(each) and name_of(each["name"]) in taken
    ]
