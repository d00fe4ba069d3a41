# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How the servers of a backend are checked, from the lines of an haproxy.cfg. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..._agent.checks.settings import LDAP, MYSQL, PGSQL, REDIS, SMTP
from ..._agent.config.schema import word
from ..._agent.proxy.settings import METHODS
from ..model.agent_checks import AGENT
from .sections import Line
from .servers import OF_ALL, Server, number

# What a service says once, if it is the same for all of its servers.
SHARED = {"port": "port", "fastinter": "fast_interval", "slowstart": "slow_start"}
GOOD = re.compile(r"\d{3}(-\d{3})?(,\d{3}(-\d{3})?)*")
HOST = re.compile(r"HTTP/1\.1\r\nhost: *([A-Za-z0-9.:_-]+)(\r\n)?(connection: *close(\r\n)?)?", re.IGNORECASE)
# The options of a backend whose check a service has by its name, the last word left open where it is a key.
BY_NAME: Mapping[str, Tuple[Tuple[str, ...], str]] = {
    MYSQL: (("mysql-check", "user"), "user"),
    PGSQL: (("pgsql-check", "user"), "user"),
    SMTP: (("smtpchk", "EHLO"), "host"),
    REDIS: (("redis-check",), ""),
    LDAP: (("ldap-check",), ""),
}
WITHOUT_EFFECT = {MYSQL: ("post-41",)}  # as it is without this word
OF_AGENT = {"agent-port": "port", "agent-inter": "interval"}


def shared_check(servers: Sequence[Server], lines: Sequence[Line]) -> Tuple[Dict[str, Any], List[Line], List[str]]:
    """Return the check of a service, its lines that no key of it has, and the options that keys say in their place.

    :param lines: those of the backend about checks
    """
    agent, of_agent = _agent(servers)
    if not all("check" in server.options for server in servers):
        return {"type": "none", **agent}, list(lines), of_agent
    names = [name for name in SHARED if len({server.argument(name) for server in servers}) == 1]
    first = servers[0]
    check: Dict[str, Any] = {"type": "tcp", **agent}
    told = ["check", *(name for name in names if first.argument(name))]
    for name in told[1:]:
        check[SHARED[name]] = number(first, name)
    if all(server.argument("on-marked-down") == "shutdown-sessions" for server in servers):
        check["shutdown_sessions"] = True
        told.append("on-marked-down")
    for name, key in (("inter", "interval"), ("fall", "fall"), ("rise", "rise")):
        check[key] = number(first, name, OF_ALL[name])
    told += of_agent
    asked = _asked(lines)
    if asked is None:
        return check, list(lines), told
    over_tls = asked.get("type") == "http" and all(
        "check-ssl" in each.options and "ssl" not in each.options for each in servers
    )
    if over_tls and all(each.argument("verify") == "none" and "check-sni" not in each.options for each in servers):
        return {**check, **asked, "type": "https"}, [], [*told, "check-ssl", "verify"]
    return {**check, **asked}, [], told


def _agent(servers: Sequence[Server]) -> Tuple[Dict[str, Any], List[str]]:
    """Return the agents that HAProxy asks, if they are the same beside all servers, and the options that say so."""
    if not all("agent-check" in server.options for server in servers):
        return {}, []
    ports, intervals = ({server.argument(name) for server in servers} for name in OF_AGENT)
    if len(ports) > 1 or len(intervals) > 1 or not next(iter(ports)):
        return {}, []
    names = [name for name in OF_AGENT if servers[0].argument(name)]
    agent = {OF_AGENT[name]: number(servers[0], name) for name in names}
    if any(AGENT[key].check(value)[1] for key, value in agent.items()):
        return {}, []
    return {"agent": agent}, ["agent-check", *names]


def _asked(lines: Sequence[Line]) -> Optional[Dict[str, Any]]:
    """Return what a check asks, as keys have it; None for checks without keys, {} for one of the connection."""
    if len(lines) == 1 and lines[0].option != "httpchk":
        return _by_name(lines[0].words[1:])
    if not lines:
        return {}
    asked = [line for line in lines if line.option == "httpchk"]
    sends = [line.words[2:] for line in lines if line.words[:2] == ("http-check", "send")]
    expects = [line.words[2:] for line in lines if line.words[:2] == ("http-check", "expect")]
    if len(asked) != 1 or len(sends) > 1 or len(expects) > 1 or len(asked) + len(sends) + len(expects) != len(lines):
        return None
    question = _sent(sends[0]) if sends else _in_one_line(asked[0].words[2:])
    if question is None or (sends and asked[0].words[2:]):
        return None
    if expects:
        words = expects[0]
        if len(words) != 2 or words[0] != "status" or not GOOD.fullmatch(words[1]):
            return None
        question["status"] = words[1].split(",")
    return {"type": "http", **question}


def _by_name(words: Sequence[str]) -> Optional[Dict[str, Any]]:
    """Read ``option mysql-check user NAME`` and its like."""
    for kind, (option, key) in BY_NAME.items():
        rest = words[len(option) :]
        if tuple(words[: len(option)]) != option:
            continue
        if not key:
            return None if rest else {"type": kind}
        if tuple(rest[1:]) in ((), WITHOUT_EFFECT.get(kind, ())) and not word(rest[0] if rest else "")[1]:
            return {"type": kind, key: rest[0]}
    return None


def _in_one_line(words: Sequence[str]) -> Optional[Dict[str, Any]]:
    """Read ``option httpchk GET /path``; without a method it is OPTIONS, without a path /."""
    given = list(words) if len(words) > 1 else ["OPTIONS", *(words or ["/"])]
    if given[0] not in METHODS or len(given) > 3:
        return None
    asked = {"method": given[0], "path": given[1]}
    if not given[2:] or given[2] == "HTTP/1.0":
        return _usual(asked)
    host = HOST.fullmatch(given[2])
    return _usual({**asked, "host": host[1]}) if host else None


def _usual(asked: Dict[str, Any]) -> Dict[str, Any]:
    """Return what is asked without the method that is the default."""
    return {key: value for key, value in asked.items() if (key, value) != ("method", METHODS[0])}


def _sent(words: Sequence[str]) -> Optional[Dict[str, Any]]:
    """Read ``http-check send meth GET uri /path ver HTTP/1.1 hdr Host name``."""
    found: Dict[str, str] = {"meth": "OPTIONS", "uri": "/"}
    left = list(words)
    while left:
        name = left.pop(0)
        if name == "hdr" and len(left) > 1 and left[0].lower() == "host" and "host" not in found:
            found["host"] = left[1]
            left = left[2:]
        elif name in ("meth", "uri", "ver") and left:
            found[name] = left.pop(0)
        else:
            return None
    if found["meth"] not in METHODS or (found.get("ver") == "HTTP/1.1") != ("host" in found):
        return None
    host = {"host": found["host"]} if "host" in found else {}
    return _usual({"method": found["meth"], "path": found["uri"], **host})
