# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A frontend with its backend, or a `listen` section, as a service. Pure.

What a service has no key for becomes raw lines of it. What it cannot have at all is Inexpressible.
"""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, List, NamedTuple, Sequence, Tuple

from . import binds, checks, limits, servers, sticking
from .sections import Inexpressible, Line, Section

HTTP, TCP = "http", "tcp"
DEFAULT_BALANCE = "roundrobin"
CHECKS = frozenset(
    (
        *(
            "external-check",
            "httpchk",
            "ldap-check",
            "mysql-check",
            "pgsql-check",
            "redis-check",
            "smtpchk",
            "spop-check",
        ),
        *("ssl-hello-chk", "tcp-check"),
    )
)
CHECK_RULES = ("http-check", "tcp-check")
# What `listen` has for its frontend, for its backend, and for both.
FRONT = frozenset(
    (
        *(
            "bind",
            "capture",
            "compression",
            "declare",
            "default_backend",
            "description",
            "error-log-format",
            "errorfile",
        ),
        *(
            "errorfiles",
            "filter",
            "http-after-response",
            "http-request",
            "log",
            "log-format",
            "log-format-sd",
            "log-tag",
        ),
        *("maxconn", "monitor", "monitor-net", "monitor-uri", "redirect", "stats", "tcp-request", "unique-id-format"),
        *("unique-id-header", "use_backend"),
    )
)
BACK = frozenset(
    (
        *("balance", "cookie", "default-server", "email-alert", "external-check", "fullconn", "hash-balance-factor"),
        *("hash-type", "http-check", "http-response", "http-reuse", "http-send-name-header", "retries", "retry-on"),
        *("server", "source", "srvtcpka-cnt", "srvtcpka-idle", "srvtcpka-intvl", "stick", "tcp-check", "tcp-response"),
        "use-server",
    )
)
FRONT_OPTIONS = frozenset(
    (
        *("accept-invalid-http-request", "accept-unsafe-violations-in-http-request", "clitcpka", "contstats"),
        *("dontlog-normal", "dontlognull", "forwarded", "forwardfor", "http-buffer-request", "http-ignore-probes"),
        *("http-keep-alive", "http-no-delay", "http-server-close", "http-use-proxy-header", "httpclose", "httplog"),
        *("httpslog", "log-separate-errors", "logasap", "nolinger", "originalto", "socket-stats", "tcp-smart-accept"),
        "tcplog",
    )
)
BACK_OPTIONS = CHECKS | frozenset(
    (
        *("abortonclose", "accept-invalid-http-response", "allbackups", "checkcache", "log-health-checks", "persist"),
        *("prefer-last-server", "redispatch", "srvtcpka", "tcp-smart-connect", "transparent"),
    )
)
BOTH_OPTIONS = frozenset(("splice-auto", "splice-request", "splice-response", "tcpka"))
FRONT_TIMEOUTS = ("client", "client-fin", "client-hs", "http-request", "http-keep-alive")
CONDITION = re.compile(r"\s(if|unless)\s")
COUNTED = re.compile(r"\b(track-sc\d|s[cr]c?\d?_\w+)")
NOWHERE = "it listens nowhere, or at an address that is no IPv4 or IPv6 address with one port"
NO_KEY = {"server-template": "its servers come from DNS", "dispatch": "it names one address for all"}


class Proxy(NamedTuple):
    """Both halves of what serves, each with those lines of its defaults that a service says itself."""

    name: str
    front: Tuple[Line, ...]
    back: Tuple[Line, ...]
    usual: Tuple[Line, ...]
    mode: str
    taken: FrozenSet[str]  # the names of all sections
    named: FrozenSet[str]  # the tables and frontends that lines name
    called: FrozenSet[str]  # the names of its frontend and its backend


def halves(section: Section) -> Tuple[List[Line], List[Line]]:
    """Return the lines of a `listen` section for its frontend, and for its backend. Raises Inexpressible."""
    front: List[Line] = []
    back: List[Line] = []
    for line in section.lines:
        if line.option in BOTH_OPTIONS:
            front.append(line)
            back.append(line)
            continue
        (front if _is_of_front(line, section) else back).append(line)
    acls = section.having("acl")
    if any(CONDITION.search(line.text) for line in back):
        back = [*acls, *back]
    return front, back


def _is_of_front(line: Line, section: Section) -> bool:
    option = line.words[2] if line.words[:2] == ("no", "option") and line.words[2:] else line.option
    if line.keyword in FRONT or line.keyword in ("acl", "mode") or option in FRONT_OPTIONS:
        return True
    if line.keyword == "timeout" and line.words[1:]:
        return line.words[1] in FRONT_TIMEOUTS
    if line.keyword == "stick-table":
        counts = any(COUNTED.search(each.text) for each in section.having("tcp-request", "http-request", "acl"))
        if counts and section.having("stick"):
            raise line.refused("frontend and backend use it, which are two in a service")
        return counts
    if line.keyword in BACK or option in BACK_OPTIONS or line.keyword in NO_KEY:
        return False
    raise line.refused("it is not known whether it is of a frontend or of a backend")


def service(proxy: Proxy, bases: Dict[str, str]) -> Tuple[Dict[str, Any], List[Line]]:
    """Return a service, and the lines that it has as raw ones. Raises Inexpressible.

    :param bases: as `binds.read` takes them
    """
    listening = _listening(proxy, bases)
    found: Dict[str, Any] = {"name": proxy.name, **listening.keys, "mode": proxy.mode}
    front = _front(proxy, found, listening.lines)
    back = _back(proxy, found, more_ports=bool(listening.lines))
    if {"stick-table"} <= {line.keyword for line in front} & {line.keyword for line in back}:
        raise Inexpressible("frontend and backend have a table each, which would have one name")
    found.update({"frontend_lines": [line.text for line in front]} if front else {})
    found.update({"backend_lines": [line.text for line in back]} if back else {})
    return found, [*front, *back]


def sharing(proxy: Proxy, backend: str, bases: Dict[str, str]) -> Tuple[Dict[str, Any], List[Line]]:
    """Return likewise a service that has a frontend alone. Raises Inexpressible.

    :param backend: the service whose servers it uses
    """
    listening = _listening(proxy, bases)
    found: Dict[str, Any] = {"name": proxy.name, **listening.keys, "mode": proxy.mode}
    front = _front(proxy, found, listening.lines)
    found["backend"] = backend
    found.update({"frontend_lines": [line.text for line in front]} if front else {})
    return found, front


def route(
    proxy: Proxy, asked: Dict[str, List[str]], service: Dict[str, Any], more_ports: bool
) -> Tuple[Dict[str, Any], List[Line]]:
    """Return a route of a service, and its raw lines. Raises Inexpressible."""
    found: Dict[str, Any] = {"name": proxy.name, **asked}
    where: Dict[str, Any] = {key: service[key] for key in ("bind", "port") if key in service}
    found.update(where)
    back = _back(proxy, found, more_ports)
    found.update({"backend_lines": [line.text for line in back]} if back else {})
    return {key: value for key, value in found.items() if key not in where}, back


def answering(
    proxy: Proxy, bases: Dict[str, str], answer: Dict[str, Any], rule: Line
) -> Tuple[Dict[str, Any], List[Line]]:
    """Return a service that answers itself, by one of its frontend's rules, and its raw lines. Raises Inexpressible."""
    listening = _listening(proxy, bases)
    found: Dict[str, Any] = {"name": proxy.name, **listening.keys, "mode": proxy.mode, "return": answer}
    front = [line for line in _front(proxy, found, listening.lines) if line != rule]
    found.update({"frontend_lines": [line.text for line in front]} if front else {})
    return found, front


def _listening(proxy: Proxy, bases: Dict[str, str]) -> binds.Listening:
    found = binds.read([line for line in proxy.front if line.keyword == "bind"], bases)
    if found is None:
        raise Inexpressible(NOWHERE)
    return found


def _front(proxy: Proxy, found: Dict[str, Any], raw_binds: Sequence[Line]) -> List[Line]:
    left = []
    limit, said = limits.limit(proxy.front, proxy.name, found.get("bind", ()), proxy.taken)
    said = said if limit and proxy.mode == HTTP and not raw_binds and proxy.named.isdisjoint(proxy.called) else []
    found.update({"rate_limit": limit} if said else {})
    own = [line for line in proxy.front if line not in said]
    for line in (*[each for each in proxy.usual if each.keyword == "maxconn"], *own):
        if line.keyword == "maxconn" and line.words[1:] and line.words[1].isdecimal():
            found["maxconn"] = int(line.words[1])
        elif line.keyword == "bind":
            left += [line] if line in raw_binds else []
        elif line.keyword not in ("mode", "default_backend") and not is_rendered(line, proxy.mode):
            left.append(line)
    return left


def _back(proxy: Proxy, found: Dict[str, Any], more_ports: bool) -> List[Line]:
    lines = _with_usual(proxy)
    for line in lines:
        if line.keyword in NO_KEY:
            raise line.refused(NO_KEY[line.keyword])
    balance = [line for line in lines if line.keyword == "balance"][-1:]
    found["balance"] = " ".join(balance[0].words[1:]) if balance else DEFAULT_BALANCE
    each = servers.read(lines)
    if not each:
        raise Inexpressible("it has no server")
    if more_ports and any(server.port is None for server in each):
        raise Inexpressible("it listens on several ports, and a server without one gets the client's")
    check, left, told = checks.shared_check(each, [line for line in lines if _is_of_check(line)])
    if each and all("send-proxy-v2" in server.options for server in each):
        found["send_proxy"] = True
        told = [*told, "send-proxy-v2"]
    table, sticks = sticking.sticky(lines, each, proxy.name, found.get("bind", ()), proxy.taken)
    found.update({"sticky": table} if table and proxy.name not in proxy.named else {})
    sticks = sticks if "sticky" in found else []
    found["check"] = check
    found["servers"] = [servers.described(server, check, told, found["port"]) for server in each]
    said = ("mode", "balance", "server", "default-server")
    return [
        line
        for line in lines
        if line not in sticks
        and (line in left if _is_of_check(line) else line.keyword not in said and not is_rendered(line, proxy.mode))
    ]


def _is_of_check(line: Line) -> bool:
    return line.option in CHECKS or line.keyword in CHECK_RULES


def _with_usual(proxy: Proxy) -> List[Line]:
    """Return the lines of the backend behind those of its defaults that it has not replaced."""
    own = {kind for line in proxy.back for kind in _kinds(line)}
    usual = [line for line in proxy.usual if line.keyword != "maxconn" and own.isdisjoint(_kinds(line))]
    return [*usual, *proxy.back]


def _kinds(line: Line) -> List[str]:
    if line.option in CHECKS:
        return ["check"]
    return [] if line.keyword == "default-server" else [line.keyword]


def is_rendered(line: Line, mode: str) -> bool:
    """Return whether the role writes a line anyway."""
    return line.words in (
        ("log", "global"),
        ("option", f"{mode}log"),
        ("option", "redispatch"),
        ("option", "dontlognull"),
    )


def is_said_by_services(line: Line) -> bool:
    """Return whether a line of `defaults` is one that services say themselves."""
    return line.keyword in ("mode", "balance", "default-server", "maxconn") or _is_of_check(line)
