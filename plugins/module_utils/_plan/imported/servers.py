# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The servers of a backend and how they are checked, from the lines of an haproxy.cfg. Pure."""

from __future__ import annotations

import re
import shlex
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..model import values
from .sections import Line

# Options of a server without an argument; all others have one.
FLAGS = frozenset(
    (
        *("agent-check", "allow-0rtt", "backup", "check", "check-send-proxy", "check-ssl", "check-via-socks4"),
        *("disabled", "enabled", "force-sslv3", "force-tlsv10", "force-tlsv11", "force-tlsv12", "force-tlsv13"),
        *("non-stick", "send-proxy", "send-proxy-v2", "send-proxy-v2-ssl", "send-proxy-v2-ssl-cn", "ssl", "stick"),
        *("tfo", "tls-tickets"),
    )
)
OF_NAMES = ("resolvers", "init-addr", "resolve-prefer", "resolve-net", "resolve-opts")
REST = ("source", "usesrc")  # with arguments up to the end of the line
OF_ALL = {"inter": "2s", "fall": "3", "rise": "2"}  # HAProxy's defaults
# What a service says once, if it is the same for all of its servers.
SHARED = {"port": "port", "fastinter": "fast_interval", "slowstart": "slow_start"}
TIMES = ("inter", "fastinter", "slowstart")
ADDRESS = re.compile(r"\[?(?P<address>[0-9A-Za-z.:_-]+?)\]?(?::(?P<port>\d{1,5}))?", re.ASCII)
GOOD = re.compile(r"\d{3}(-\d{3})?(,\d{3}(-\d{3})?)*")
HOST = re.compile(r"HTTP/1\.1\r\nhost: *([A-Za-z0-9.:_-]+)(\r\n)?(connection: *close(\r\n)?)?", re.IGNORECASE)

Options = Dict[str, Tuple[str, ...]]  # their arguments, by name


class Server(NamedTuple):
    """A server line."""

    line: Line
    name: str
    address: str
    port: Optional[int]
    options: Options  # with those of default-server

    def argument(self, name: str) -> Optional[str]:
        return self.options[name][0] if self.options.get(name) else None


def read(lines: Sequence[Line]) -> List[Server]:
    """Return the servers of a backend, whose lines begin with those of its defaults. Raises Inexpressible."""
    usual: Options = {}
    found: List[Server] = []
    for line in lines:
        if line.keyword == "default-server":
            if found:
                raise line.refused("it stands behind servers that it does not count for")
            usual.update(_options(line, 1))
        elif line.keyword == "server":
            found.append(_server(line, usual))
    return found


def _server(line: Line, usual: Options) -> Server:
    place = ADDRESS.fullmatch(line.words[2]) if line.words[2:] else None
    if place is None:
        raise line.refused("its address is none of IPv4, IPv6 or a name, with or without a port")
    own = _options(line, 3)
    undone = [name for name in own if name.startswith("no-") and name[3:] in usual]
    if undone:
        raise line.refused(f"{undone[0]} takes back what default-server has")
    resolved = [name for name in OF_NAMES if name in own or name in usual]
    if resolved and values.is_name(place["address"]):
        raise line.refused(f"it says how its name is resolved ({resolved[0]}), which the role does its own way")
    port = int(place["port"]) if place["port"] else None
    return Server(line, line.words[1], place["address"], port, {**usual, **own})


def _options(line: Line, begin: int) -> Options:
    found: Options = {}
    words = list(line.words[begin:])
    while words:
        name = words.pop(0)
        if name in REST:
            found[name], words = tuple(words), []
        elif name in FLAGS or name.startswith("no-"):
            found[name] = ()
        else:
            found[name] = (words.pop(0),) if words else ()
    return found


def shared_check(servers: Sequence[Server], lines: Sequence[Line]) -> Tuple[Dict[str, Any], List[Line], List[str]]:
    """Return the check of a service, its lines that no key of it has, and the options that keys say in their place.

    :param lines: those of the backend about checks
    """
    if not all("check" in server.options for server in servers):
        return {"type": "none"}, list(lines), []
    names = [name for name in SHARED if len({server.argument(name) for server in servers}) == 1]
    first = servers[0]
    check: Dict[str, Any] = {"type": "tcp"}
    told = ["check", *(name for name in names if first.argument(name))]
    for name in told[1:]:
        check[SHARED[name]] = _number(first, name)
    if all(server.argument("on-marked-down") == "shutdown-sessions" for server in servers):
        check["shutdown_sessions"] = True
        told.append("on-marked-down")
    for name, key in (("inter", "interval"), ("fall", "fall"), ("rise", "rise")):
        check[key] = _number(first, name, OF_ALL[name])
    asked = _asked(lines)
    if asked is None:
        return check, list(lines), told
    over_tls = all("check-ssl" in each.options and "ssl" not in each.options for each in servers)
    if over_tls and all(each.argument("verify") == "none" and "check-sni" not in each.options for each in servers):
        return {**check, **asked, "type": "https"}, [], [*told, "check-ssl", "verify"]
    return {**check, **asked}, [], told


def _number(server: Server, name: str, default: str = "") -> Any:
    text = server.argument(name) or default
    if name in TIMES:
        seconds, wrong = values.seconds(timed(text))
        if wrong:
            raise server.line.refused(f"{name} is no time: {wrong}")
        return seconds
    if not text.isdecimal():
        raise server.line.refused(f"{name} is no number")
    return int(text)


def timed(text: str) -> str:
    """Return a time with its unit, which HAProxy takes for milliseconds."""
    return f"{text}ms" if text.isdecimal() else text


def _asked(lines: Sequence[Line]) -> Optional[Dict[str, Any]]:
    """Return what a check asks by HTTP, as keys have it; None for other checks, {} for one of the connection."""
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


def _in_one_line(words: Sequence[str]) -> Optional[Dict[str, Any]]:
    """Read ``option httpchk GET /path``."""
    if len(words) < 2 or words[0] != "GET" or len(words) > 3:
        return None
    if not words[2:] or words[2] == "HTTP/1.0":
        return {"path": words[1]}
    host = HOST.fullmatch(words[2])
    return {"path": words[1], "host": host[1]} if host else None


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
    if found["meth"] != "GET" or (found.get("ver") == "HTTP/1.1") != ("host" in found):
        return None
    return {"path": found["uri"], **({"host": found["host"]} if "host" in found else {})}


def described(server: Server, check: Mapping[str, Any], told: Sequence[str], port: int) -> Dict[str, Any]:
    """Return a server as the variable has it.

    :param told: the options that the service has said for all of its servers
    """
    found: Dict[str, Any] = {"name": server.name, "address": server.address}
    found.update({} if server.port in (None, port) else {"port": server.port})
    left = {name: arguments for name, arguments in server.options.items() if name not in told}
    for name in ("weight", "maxconn"):
        if name in left:
            found[name] = _number(server, name)
            del left[name]
    found.update({"backup": True} if left.pop("backup", None) is not None else {})
    for name, key in (("inter", "interval"), ("fall", "fall"), ("rise", "rise")):
        if key in check and _number(server, name, OF_ALL[name]) == check[key]:
            left.pop(name, None)
        elif key in check and name not in left:
            left[name] = (OF_ALL[name],)
    options = [" ".join([name, *map(shlex.quote, arguments)]) for name, arguments in left.items()]
    return {**found, **({"options": options} if options else {})}
