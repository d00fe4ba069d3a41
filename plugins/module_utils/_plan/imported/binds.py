# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a frontend listens, as a service has it, from the `bind` lines of an haproxy.cfg. Pure."""

from __future__ import annotations

import ipaddress
import posixpath
import re
import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..._shared import tls_words
from ..model.tls_profiles import NONE
from .sections import Line

ANY, ANY6 = "*", "::"
PLACE = re.compile(r"(?:(?P<family>ipv[46])@)?(?P<host>\*|[0-9.]*|\[?[0-9A-Fa-f:]*\]?):(?P<port>\d{1,5})")
# Options of `bind` without an argument; all others have one.
FLAGS = frozenset(
    (
        *("accept-proxy", "allow-0rtt", "defer-accept", "force-sslv3", "force-tlsv10", "force-tlsv11", "force-tlsv12"),
        *("force-tlsv13", "generate-certificates", "prefer-client-ciphers", "quic-force-retry", "ssl", "strict-sni"),
        *("tfo", "transparent", "v4v6", "v6only"),
    )
)
OF_TLS = {
    "ca-file": "ca",
    "crl-file": "crl",
    "verify": "verify",
    "alpn": "alpn",
    "ssl-min-ver": "min_version",
    "ciphers": "ciphers",
    "ciphersuites": "ciphersuites",
}
FAMILIES = ("v4v6", "v6only")


class Bind(NamedTuple):
    """The address, or addresses, of a line, with options."""

    line: Line
    hosts: Tuple[str, ...]
    port: int
    options: Tuple[Tuple[str, ...], ...]  # each with its arguments

    @property
    def key(self) -> Tuple[int, Tuple[Tuple[str, ...], ...]]:
        return self.port, self.options

    @property
    def has_tls(self) -> bool:
        return ("ssl",) in self.options


class Listening(NamedTuple):
    """What a service has of it, and what only raw lines can have."""

    keys: Dict[str, Any]
    lines: List[Line]


def read(lines: Sequence[Line], bases: Dict[str, str]) -> Optional[Listening]:
    """Return where a frontend listens, with the first place with TLS or else the first one as its port.

    :param lines: those with `bind`
    :param bases: the folders of certificates, ``ca-base`` and ``crt-base``
    """
    found = [each for each in map(_bind, lines) if each]
    if not found:
        return None
    main = next((each for each in found if each.has_tls), found[0])
    mine = [each for each in found if each.key == main.key]
    hosts = list(dict.fromkeys(host for each in mine for host in each.hosts))
    keys: Dict[str, Any] = {**({} if hosts == [ANY] else {"bind": hosts}), "port": main.port}
    keys.update(_with_options(main, bases))
    taken = [each.line for each in mine]
    return Listening(keys, [line for line in lines if line not in taken])


def _bind(line: Line) -> Optional[Bind]:
    """Read a line. None for one of which a service has no key: several ports, a socket, a name, a variable."""
    places = [PLACE.fullmatch(text) for text in line.words[1].split(",")] if line.words[1:] else []
    options = _options(line.words[2:])
    ports = {place["port"] for place in places if place}
    if not all(places) or len(ports) != 1:
        return None
    hosts: List[str] = []
    for place in places:
        found = _hosts(place["host"].strip("[]"), place["family"] == "ipv6", options) if place else None
        if found is None:
            return None
        hosts += found
    kept = tuple(sorted(option for option in options if option[0] not in FAMILIES))
    return Bind(line, tuple(hosts), int(ports.pop()), kept)


def _hosts(host: str, is_ipv6: bool, options: Sequence[Tuple[str, ...]]) -> Optional[List[str]]:
    if host in ("", ANY, "0.0.0.0", ANY6):
        if host != ANY6 and not is_ipv6:
            return [ANY]
        # The kernel takes both families there, unless it is told otherwise.
        return [ANY6] if ("v6only",) in options else [ANY, ANY6]
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return None


def _options(words: Sequence[str]) -> List[Tuple[str, ...]]:
    found: List[Tuple[str, ...]] = []
    left = list(words)
    while left:
        name = left.pop(0)
        has_argument = name not in FLAGS and not name.startswith("no-") and left
        found.append((name, left.pop(0)) if has_argument else (name,))
    return found


def _with_options(bind: Bind, bases: Dict[str, str]) -> Dict[str, Any]:
    tls: Dict[str, Any] = {}
    others: List[str] = []
    for name, *arguments in _options(bind.line.words[2:]):
        value = arguments[0] if arguments else ""
        if name in ("ssl", *FAMILIES) or (name == "verify" and value == "none"):
            continue
        if name == "crt":
            tls.setdefault("certificate", []).append(_below(bases.get("crt-base", ""), value))
        elif name == "strict-sni":
            tls["strict_sni"] = True
        elif name in OF_TLS:
            value = _below(bases.get("ca-base", ""), value) if name in ("ca-file", "crl-file") else value
            tls[OF_TLS[name]] = value.split(",") if name == "alpn" else value
        else:
            others.append(" ".join([name, *map(shlex.quote, arguments)]))
    if tls.get("verify") == "required":
        del tls["verify"]  # as it is by default
    if not tls_words.are_in(bind.line.words):
        tls["profile"] = NONE
    if not bind.has_tls:
        return {"bind_options": others} if others else {}
    return {"tls": tls, **({"bind_options": others} if others else {})}


def _below(folder: str, path: str) -> str:
    return path if path.startswith("/") or not folder else posixpath.join(folder, path)
