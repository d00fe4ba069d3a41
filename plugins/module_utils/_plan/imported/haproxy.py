# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An haproxy.cfg as variables of the role haproxy. Pure.

A frontend with its backend becomes a service where a service can say it. Everything else is carried over as it
stands, in haproxy_extra_lines, behind the defaults that count for it.
"""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..._agent.follow.haproxy_file import CONDITIONS
from ..._shared import mark
from ..model import services as services_of
from ..model import values
from . import answers, differences, peering, proxies, routes, servers
from .sections import Inexpressible, Line, Section, is_conditional, lineage, read
from .work import Work

# What the role writes itself, by how it begins.
OF_ROLE = ("user", "group", "chroot", "daemon", "master-worker", "pidfile", "nbproc", "uid", "gid", "quiet")
TIMEOUTS = ("connect", "client", "server", "queue", "check", "http-request", "http-keep-alive", "tunnel")
WRITTEN = {
    ("log", "global"),
    *(("option", option) for option in ("httplog", "tcplog", "dontlognull", "redispatch")),
    ("option", "redispatch", "1"),
}


class Found(NamedTuple):
    """What an haproxy.cfg is as variables."""

    faults: Faults = []
    services: List[Dict[str, Any]] = []
    variables: Dict[str, Any] = {}  # the others, with their whole names
    raw: List[str] = []  # sentences: what only raw lines have
    lost: List[str] = []  # sentences: what is not carried over
    notes: List[str] = []  # sentences: what differs nevertheless


def convert(text: str) -> Found:
    """Return the variables of the role that have the effect of a text."""
    sections, faults = read(text)
    if mark.is_marked(text):
        faults = ["this collection has written it: use the inventory that it is from."]
    if faults:
        return Found(faults=faults)
    told = peering.read(sections)
    found = _converted(peering.without(sections, told), told)
    is_whole = told is None or peering.has_all(told, [found.services, found.variables])
    return found if is_whole else _converted(sections, None)


def _converted(sections: List[Section], told: Optional[peering.Peers]) -> Found:
    """Return the variables.

    :param told: the peers, if they are those of the services
    """
    work = Work(sections)
    reasons: List[Tuple[Section, str]] = []
    for section in work.of("listen", "frontend"):
        try:
            earlier = _earlier(section, work)
            _share(section, earlier, work) if earlier else _express(section, work)
        except Inexpressible as why:
            reasons.append((section, str(why).rstrip(".")))
    work.raw[:0] = [
        f"{section.title}, line {section.number}, is in haproxy_extra_lines as it stands: {reason}."
        for section, reason in reasons
        if not _is_redirect(section, work)
    ]
    peering.tell(work, told)
    _global(work)
    _defaults(work)
    _extra(work)
    differences.note(work)
    return Found([], work.services, work.variables, list(dict.fromkeys(work.raw)), work.lost, work.notes)


def _is_redirect(section: Section, work: Work) -> bool:
    """Whether a frontend is that of a service with TLS to which it leads. Makes it one."""
    try:
        usual = _usual(section, work)
    except Inexpressible:
        return False
    mode = _mode(section, usual)
    lines = [line for line in section.lines if not proxies.is_rendered(line, mode)]
    found = answers.redirected(section, lines, work.services, work.bases) if mode == proxies.HTTP else None
    name = f"{found['service']['name']}-redirect" if found else ""
    if not found or is_conditional(section) or section.name in work.named or name in [s.name for s in work.sections]:
        return False
    found["service"]["tls"]["redirect"] = found["port"]
    work.expressed.append(section)
    work.notes.append(f"{section.title} is called {name} in logs and metrics.")
    return True


def _express_answer(section: Section, work: Work) -> bool:
    """Add a service that HAProxy answers itself; return whether a section is one. Raises Inexpressible."""
    found = answers.answer(section.lines)
    others = [each for each in work.sections if each.name == section.name and each is not section]
    if not found or others or is_conditional(section) or (section.kind == "listen" and proxies.halves(section)[1]):
        return False
    usual = _usual(section, work)
    lines = [*_own_timeouts(usual, list(section.lines), work, True), *section.lines]
    said = tuple(line for line in usual if line.keyword == "maxconn")
    mode, names = _mode(section, usual), _names(section, section, work)
    proxy = proxies.Proxy(section.name, tuple(lines), (), said, mode, *names)
    service, raw = proxies.answering(proxy, work.bases, *found)
    _add(service, raw, [section], work)
    return True


def _express(section: Section, work: Work) -> None:
    """Add a service. Raises Inexpressible."""
    if _express_answer(section, work):
        return
    back = section if section.kind == "listen" else _backend_of(section, work)
    for each in (section, back):
        if is_conditional(each):
            raise Inexpressible(f"{each.title} has lines for which HAProxy judges a condition")
    front_usual, back_usual = (_usual(each, work) for each in (section, back))
    modes = [_mode(each, usual) for each, usual in ((section, front_usual), (back, back_usual))]
    if modes[0] != modes[1]:
        raise Inexpressible(f"frontend and backend differ in their mode, {modes[0]} and {modes[1]}")
    if section is not back:
        _require_one_name(section, back, work)
    fronts, backs = proxies.halves(section) if section is back else (list(section.lines), list(back.lines))
    fronts, backs = (
        [*_own_timeouts(front_usual, fronts, work, True), *fronts],
        [*_own_timeouts(back_usual, backs, work, False), *backs],
    )
    usual = [line for line in back_usual if line.keyword != "maxconn"] + [
        line for line in front_usual if line.keyword == "maxconn"
    ]
    said = tuple(line for line in usual if proxies.is_said_by_services(line))
    names = _names(section, back, work)
    proxy = proxies.Proxy(back.name, tuple(fronts), tuple(backs), said, modes[0], *names)
    routed = _routed(section, proxy, work) if section.kind == "frontend" and proxy.mode == proxies.HTTP else None
    service, raw, behind = routed or (*proxies.service(proxy, work.bases), [])
    _add(service, raw, [section, back, *behind], work)
    if section.name != back.name:
        work.notes.append(f"frontend {section.name} is called {back.name}, like its backend, in logs and metrics.")


def _names(front: Section, back: Section, work: Work) -> Tuple[FrozenSet[str], ...]:
    """Return the names of all sections, those that lines refer to, and those of a frontend and its backend."""
    of_all = (each.name for each in work.sections)
    return frozenset(of_all), frozenset(work.named), frozenset((front.name, back.name))


def _routed(
    section: Section, proxy: proxies.Proxy, work: Work
) -> Optional[Tuple[Dict[str, Any], List[Line], List[Section]]]:
    """Return a service with routes, its raw lines, and the sections behind the routes; None where lines stay raw."""
    read_routes = routes.read(proxy.front)
    if not read_routes:
        return None
    try:
        front = tuple(routes.left(proxy.front, read_routes))
        service, raw = proxies.service(proxy._replace(front=front), work.bases)
        has_more = any(line.keyword == "bind" for line in raw)
        is_usual = not has_more and service["port"] == (443 if "tls" in service else 80)
        if any(route.with_port for route in read_routes) and not is_usual:
            return None
        behind = [_behind(route.backend, section, work) for route in read_routes]
        described = []
        for route, back in zip(read_routes, behind):
            lines, said = _of_backend(back, proxy.mode, work)
            own = proxy._replace(name=back.name, front=(), back=lines, usual=said)
            found, more = proxies.route(own, route.asked, service, has_more)
            described.append(found)
            raw += more
    except Inexpressible:
        return None
    service["routes"] = described
    if services_of.read_services([service], "")[1]:
        return None
    if any(route.with_port for route in read_routes):
        work.notes.append(f"The routes of {service['name']} take a host with a port behind it, too.")
    return service, raw, behind


def _behind(name: str, section: Section, work: Work) -> Section:
    """Return the backend of a route, which nobody else has. Raises Inexpressible."""
    users = [each for each in work.sections for line in each.lines if line.words[1:2] == (name,) and _leads(line)]
    found = [each for each in work.of("backend", "listen") if each.name == name]
    is_own = users == [section] and len(found) == 1 and found[0].kind == "backend"
    if not is_own or found[0] in work.expressed or is_conditional(found[0]):
        raise Inexpressible("its backend is that of others, too")
    return found[0]


def _leads(line: Line) -> bool:
    return line.keyword in ("use_backend", "default_backend")


def _of_backend(back: Section, mode: str, work: Work) -> Tuple[Tuple[Line, ...], Tuple[Line, ...]]:
    """Return the lines of a backend, and those of its defaults that it says. Raises Inexpressible."""
    usual = _usual(back, work)
    if _mode(back, usual) != mode:
        raise Inexpressible("its mode is another one")
    lines = (*_own_timeouts(usual, back.lines, work, False), *back.lines)
    return lines, tuple(line for line in usual if line.keyword != "maxconn" and proxies.is_said_by_services(line))


def _add(
    service: Dict[str, Any],
    raw: Sequence[Line],
    sections: Sequence[Section],
    work: Work,
    others: Sequence[Dict[str, Any]] = (),
) -> None:
    """Add a service that sections have become. Raises Inexpressible where it is refused.

    :param others: the services that it names
    """
    _found, faults = services_of.read_services([service, *others], "")
    if faults:
        raise Inexpressible(re.sub(r"^\[[^\]]*\]\.?( \([^)]*\))?\.?", "", faults[0]).rstrip("."))
    work.services.append(service)
    work.expressed += sections
    work.raw += [f"line {line.number} ({line.shown}) is a raw line of service {service['name']}." for line in raw]


def _backend_of(section: Section, work: Work) -> Section:
    names = section.values("default_backend")
    if len(names) != 1:
        raise Inexpressible("it has no backend for all requests, and a service has servers of its own")
    found = [each for each in work.of("backend", "listen") if each.name == names[0]]
    if len(found) != 1 or found[0].kind != "backend":
        raise Inexpressible(f"its backend {names[0]} is no section backend that there is once")
    return found[0]


def _earlier(section: Section, work: Work) -> Optional[Section]:
    """Return the backend of a frontend that is already one of a service; None if it is not."""
    has_one = section.kind == "frontend" and section.values("default_backend")
    back = _backend_of(section, work) if has_one else None
    return back if back in work.expressed else None


def _share(section: Section, back: Section, work: Work) -> None:
    """Add a service that uses the servers of an earlier one. Raises Inexpressible."""
    if is_conditional(section):
        raise Inexpressible(f"{section.title} has lines for which HAProxy judges a condition")
    usual = _usual(section, work)
    mode = _mode(section, usual)
    (other,) = [each for each in work.services if each["name"] == back.name]
    if mode != other["mode"]:
        raise Inexpressible(f"frontend and backend differ in their mode, {mode} and {other['mode']}")
    if any(server.port is None for server in servers.read(back.lines)):
        raise Inexpressible(f"a server of {back.name} has no port, and gets the client's")
    lines = [*_own_timeouts(usual, section.lines, work, True), *section.lines]
    said = tuple(line for line in usual if line.keyword == "maxconn")
    proxy = proxies.Proxy(section.name, tuple(lines), (), said, mode, *_names(section, back, work))
    if section.name in [each["name"] for each in work.services]:
        raise Inexpressible(f"service {section.name} has its name")
    _add(*proxies.sharing(proxy, back.name, work.bases), [section], work, [other])


def _require_one_name(front: Section, back: Section, work: Work) -> None:
    """Refuse what would mistake the frontend for another one, as it gets the name of its backend."""
    others = [each for each in work.of("frontend", "listen") if each.name == back.name and each != front]
    if others:
        raise Inexpressible(f"{others[0].title} has the name of its backend, which the service would have too")
    if front.name != back.name and front.name in work.named:
        why = f"it names frontend {front.name}, and the service would be called {back.name}"
        raise work.named[front.name].refused(why)


def _usual(section: Section, work: Work) -> List[Line]:
    """Return the lines of its defaults. Raises Inexpressible where those of the other services are different."""
    found = lineage(work.sections, section)
    theirs, ours = ({line.text for line in lines if _is_of_defaults(line)} for lines in (found, work.main))
    if any(line.keyword in CONDITIONS for line in found):
        raise Inexpressible("its defaults have lines for which HAProxy judges a condition")
    if theirs != ours:
        raise Inexpressible("its defaults are others than those in haproxy_defaults_lines")
    return found


def _is_of_defaults(line: Line) -> bool:
    return not (proxies.is_said_by_services(line) or line.keyword == "timeout" or line.words in WRITTEN)


def _mode(section: Section, usual: Sequence[Line]) -> str:
    said = [line.words[1] for line in (*usual, *section.lines) if line.keyword == "mode" and line.words[1:]]
    mode = [proxies.TCP, *said][-1]
    if mode not in (proxies.HTTP, proxies.TCP):
        raise Inexpressible(f"its mode is {mode}")
    return mode


def _own_timeouts(usual: Sequence[Line], own: Sequence[Line], work: Work, is_front: bool) -> List[Line]:
    """Return the timeouts of other defaults than those of most services, unless the section has its own."""
    main = {line.words for line in work.main if line.keyword == "timeout"}
    said = {line.words[:2] for line in own}
    return [
        line
        for line in usual
        if line.keyword == "timeout" and line.words not in main and line.words[:2] not in said
        if (line.words[1] in proxies.FRONT_TIMEOUTS) is is_front
    ]


def _global(work: Work) -> None:
    """Turn the section global into variables."""
    lines = [line for section in work.of("global") for line in section.lines]
    kept: List[str] = []
    is_open = not any(map(is_conditional, work.of("global")))
    for line in lines:
        value = line.words[1] if line.words[1:] and is_open else ""
        if line.keyword == "maxconn" and value.isdecimal():
            work.variables["haproxy_maxconn"] = int(value)
        elif line.keyword == "hard-stop-after" and not values.time(servers.timed(value))[1]:
            work.variables["haproxy_hard_stop_after"] = servers.timed(value)
        elif line.keyword == "log" and is_open and not values.log_targets([" ".join(line.words[1:])])[1]:
            work.variables.setdefault("haproxy_log_targets", []).append(" ".join(line.words[1:]))
        elif line.keyword == peering.LOCAL and "haproxy_peers" in work.variables:
            work.lost.append(f"line {line.number} ({line.shown}) is left out: it is the host's name in the inventory.")
        elif line.keyword in OF_ROLE or (line.words[:2] == ("stats", "socket") and _is_a_file(line)):
            work.lost.append(f"line {line.number} ({line.shown}) is left out: the role writes its own.")
        else:
            kept.append(line.text)
            work.raw.append(f"line {line.number} ({line.shown}) is in haproxy_global_lines.")
    work.variables.update({"haproxy_global_lines": kept} if kept else {})


def _is_a_file(line: Line) -> bool:
    return bool(line.words[2:]) and line.words[2].startswith(("/", "unix@"))


def _defaults(work: Work) -> None:
    """Turn the defaults of most services into variables."""
    if not work.services:
        return
    fins = {line.words[1]: line.words[2] for line in work.main if line.keyword == "timeout" and line.words[2:]}
    for key in TIMEOUTS:
        if key in fins and not values.time(servers.timed(fins[key]))[1]:
            work.variables[f"haproxy_timeout_{key.replace('-', '_')}"] = servers.timed(fins[key])
    kept = [line for line in work.main if _is_of_defaults(line) and not _is_setting(line, work)]
    kept += [
        line
        for line in work.main
        if line.keyword == "timeout"
        and f"haproxy_timeout_{'_'.join(line.words[1:2]).replace('-', '_')}" not in work.variables
    ]
    work.raw += [f"line {line.number} ({line.shown}) is in haproxy_defaults_lines." for line in kept]
    work.variables.update({"haproxy_defaults_lines": [line.text for line in kept]} if kept else {})
    _limit_of_checks(work)
    missing = [key for key in TIMEOUTS if f"haproxy_timeout_{key.replace('-', '_')}" not in work.variables]
    if missing:
        work.notes.append(f"The file does not set the timeouts {', '.join(missing)}: those of the role count.")
    if ("option", "redispatch") not in {line.words[:2] for section in work.sections for line in section.lines}:
        work.notes.append("The role sets option redispatch: a client whose server cannot be reached gets another one.")


def _is_setting(line: Line, work: Work) -> bool:
    if line.keyword == "retries" and line.words[1:] and line.words[1].isdecimal():
        work.variables["haproxy_retries"] = int(line.words[1])
        return True
    if line.words == ("option", "dontlog-normal"):
        work.variables["haproxy_log_normal"] = False
        return True
    return False


def _limit_of_checks(work: Work) -> None:
    """HAProxy without ``timeout check`` gives a check as long as its interval."""
    checks = [each["check"] for each in work.services if "interval" in each.get("check", {})]
    intervals = [check["interval"] for check in checks if check["type"] != "none"]
    if "haproxy_timeout_check" not in work.variables and intervals:
        work.variables["haproxy_timeout_check"] = f"{round(1000 * max(intervals))}ms"


def _extra(work: Work) -> None:
    """Carry over each section that is in no service, with the defaults that count for it, in the file's order."""
    left = [each for each in work.sections if each.kind != "global" and each not in work.expressed]
    is_needed = any(each.kind in ("frontend", "backend", "listen") for each in left)
    kept = [each for each in left if each.kind != "defaults" or is_needed]
    for section in kept:
        if section.kind not in ("frontend", "listen", "defaults"):
            work.raw.append(f"{section.title}, line {section.number}, is in haproxy_extra_lines as it stands.")
    lines = [text for section in kept for text in section.texts]
    first = next((each.kind for each in kept if each.kind in ("defaults", "frontend", "backend", "listen")), "defaults")
    # Those of the role would count for a section that has none before it.
    lines = lines if first == "defaults" else ["defaults", *lines]
    work.variables.update({"haproxy_extra_lines": lines} if lines else {})
