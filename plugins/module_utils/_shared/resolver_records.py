# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The addresses that a node's resolver answers, in its configuration, and what it answers while VIPs change. Pure.

A VIP and its names are two consumers of one change, and nobody can say at which moment the VIP moves. So a name whose
address is replaced has both before any router changes, and until the change is proved or has been taken back.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

PATH = "/etc/onprem-lb-resolver/dnsmasq.conf"
RECORD = re.compile(r"host-record=(?P<host>[^,]+),(?P<ip>[^,]+)(?:,.*)?|address=/(?P<below>[^/]+)/(?P<to>.+)")
LISTEN = re.compile(r"^listen-address=([^,\n]+)", re.MULTILINE)


class OnTheWay(NamedTuple):
    """What a resolver answers while VIPs change.

    :ivar config: its configuration
    :ivar server: the address at which it listens, '' where it does so at every one of the host
    :ivar answers: ``{name, addresses}`` of each name that loses an address, and has those of both meanwhile
    """

    config: str
    server: str
    answers: List[Dict[str, Any]]


def on_the_way(now: str, then: str) -> OnTheWay:
    """Return what a resolver answers between two configurations.

    All else stays as it is now: it is what runs. A name that only gets a further address is right without it, because
    that of now is held all the time.
    """
    before, after = addresses(now), addresses(then)
    losing = [name for name, ips in before.items() if name in after and {*ips} - {*after[name]}]
    lines = [line for line, name, ip in _records(then) if name in losing and ip not in before[name]]
    answers = [
        {"name": name.replace("*", "any", 1), "addresses": [*dict.fromkeys([*before[name], *after[name]])]}
        for name in losing
    ]
    listens = LISTEN.search(now)
    config = "\n".join([now.rstrip("\n"), *lines, ""]) if lines else now
    return OnTheWay(config, listens[1] if listens else "", answers)


def addresses(config: str) -> Dict[str, List[str]]:
    """Return the addresses by name; that of a wildcard begins with ``*.``."""
    found: Dict[str, List[str]] = {}
    for _line, name, ip in _records(config):
        found.setdefault(name, []).append(ip)
    return found


def _records(config: str) -> Iterator[Tuple[str, str, str]]:
    """Yield each line that has an address, with the name and the address."""
    for line in config.splitlines():
        match = RECORD.fullmatch(line)
        if match:
            yield line, match["host"] or f"*.{match['below']}", match["ip"] or match["to"]
