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
TIMES = ("inter", "fastinter", "slowstart", "agent-inter")
ADDRESS = re.compile(r"\[?(?P<address>[0-9A-Za-z.:_-]+?)\]?(?::(?P<port>\d{1,5}))?", re.ASCII)

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


def number(server: Server, name: str, default: str = "") -> Any:
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


def described(server: Server, check: Mapping[str, Any], told: Sequence[str], port: int) -> Dict[str, Any]:
    """Return a server as the variable has it.

    :param told: the options that the service has said for all of its servers
    """
    found: Dict[str, Any] = {"name": server.name, "address": server.address}
    found.update({} if server.port in (None, port) else {"port": server.port})
    left = {name: arguments for name, arguments in server.options.items() if name not in told}
    for name in ("weight", "maxconn"):
        if name in left:
            found[name] = number(server, name)
            del left[name]
    found.update({"backup": True} if left.pop("backup", None) is not None else {})
    for name, key in (("inter", "interval"), ("fall", "fall"), ("rise", "rise")):
        if key in check and number(server, name, OF_ALL[name]) == check[key]:
            left.pop(name, None)
        elif key in check and name not in left:
            left[name] = (OF_ALL[name],)
    options = [" ".join([name, *map(shlex.quote, arguments)]) for name, arguments in left.items()]
    return {**found, **({"options": options} if options else {})}
