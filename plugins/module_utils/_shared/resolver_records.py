# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The addresses that a node's resolver answers, in its files, and what it answers while VIPs change. Pure.

A VIP and its names are two consumers of one change, and nobody can say at which moment the VIP moves. So a name whose
address is replaced has both before any router changes, and until the change is proved or has been taken back.

dnsmasq reads a hosts file again when it is told to, and misses no question meanwhile. Its configuration, which alone
can have wildcards, it reads at a start: a host is without its names for that moment, so no two hosts start together.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

Names = Mapping[str, Sequence[str]]  # the addresses by name; that of a wildcard begins with ``*.``

CONFIG = "/etc/onprem-lb-resolver/dnsmasq.conf"  # with the wildcards
NAMES = "/etc/onprem-lb-resolver/names"  # a hosts file with all other names that are not of nodes
PATHS = (CONFIG, NAMES)
WILDCARD = re.compile(r"address=/(?P<below>[^/]+)/(?P<to>.+)")
LISTEN = re.compile(r"^listen-address=([^,\n]+)", re.MULTILINE)


class Answering(NamedTuple):
    """The texts of the files at PATHS; empty where there is no resolver."""

    config: str = ""
    names: str = ""


class OnTheWay(NamedTuple):
    """What a resolver answers while VIPs change.

    :ivar config: its configuration
    :ivar names: its hosts file
    :ivar server: the address at which it listens, '' where it does so at every one of the host
    :ivar answers: ``{name, addresses}`` of each name that loses an address, and has those of both meanwhile
    """

    config: str
    names: str
    server: str
    answers: List[Dict[str, Any]]


def on_the_way(now: Answering, then: Answering) -> OnTheWay:
    """Return what a resolver answers between two changes of its files.

    All else stays as it is now: it is what runs. A name that only gets a further address is right without it, because
    that of now is held all the time.
    """
    before, after = addresses(now), addresses(then)
    losing = [name for name, ips in before.items() if name in after and {*ips} - {*after[name]}]
    answers = questions({name: [*dict.fromkeys([*before[name], *after[name]])] for name in losing})
    config, names = (
        _with(text, [line for line, name, ip in found if name in losing and ip not in before[name]])
        for text, found in ((now.config, _wildcards(then.config)), (now.names, _hosts(then.names)))
    )
    return OnTheWay(config, names, server(now.config), answers)


def server(config: str) -> str:
    """Return the first address at which a resolver listens, '' where it does so at every one of the host."""
    listens = LISTEN.search(config)
    return listens[1] if listens else ""


def addresses(given: Answering) -> Dict[str, List[str]]:
    """Return the addresses by name; that of a wildcard begins with ``*.``."""
    found: Dict[str, List[str]] = {}
    for _line, name, ip in (*_wildcards(given.config), *_hosts(given.names)):
        found.setdefault(name, []).append(ip)
    return found


def questions(names: Dict[str, List[str]]) -> List[Dict[str, Any]]:
    """Return ``{name, addresses}`` by which to ask for names: one below it stands for a wildcard."""
    return [{"name": name.replace("*", "any", 1), "addresses": ips} for name, ips in names.items()]


def outdated(wanted: Names, answered: Mapping[str, Names]) -> List[str]:
    """Return a sentence for the hosts whose resolvers lead names elsewhere than they should.

    :param answered: what each of them answers; nothing where it has no resolver, or that is not known
    """
    hosts: Dict[Tuple[str, ...], List[str]] = {}
    for host, names in answered.items():
        lines = tuple(_elsewhere(wanted, names)) if names and wanted else ()
        hosts.setdefault(lines, []).extend([host] if lines else [])
    return [
        f"{', '.join(same)}: the resolver leads {'; '.join(lines)}. Run onprem.lb.site without --limit."
        for lines, same in hosts.items()
        if lines
    ]


def _elsewhere(wanted: Names, names: Names) -> Iterator[str]:
    """Yield which names lead where, and where they should."""
    found: Dict[Tuple[str, str], List[str]] = {}
    for name, ips in wanted.items():
        if {*names.get(name, ())} != {*ips}:
            found.setdefault((", ".join(names.get(name, ())), ", ".join(ips)), []).append(name)
    for (now, then), same in found.items():
        yield f"{', '.join(same)} {f'to {now}' if now else 'nowhere'}, and not to {then}"


def _with(text: str, lines: List[str]) -> str:
    return "\n".join([text.rstrip("\n"), *lines, ""]) if lines else text


def _wildcards(config: str) -> Iterator[Tuple[str, str, str]]:
    """Yield each line that has an address, with the name and the address."""
    for line in config.splitlines():
        match = WILDCARD.fullmatch(line)
        if match:
            yield line, f"*.{match['below']}", match["to"]


def _hosts(names: str) -> Iterator[Tuple[str, str, str]]:
    """Yield the same of a hosts file as `hosts_file` writes it."""
    for line in names.splitlines():
        words = line.split()
        if len(words) == 2 and not line.startswith("#"):
            yield line, words[1], words[0]


def hosts_file(mark: str, names: Dict[str, List[str]]) -> str:
    """Return the hosts file: one line for each name and address."""
    return "\n".join([mark, *(f"{ip} {name}" for name, ips in names.items() for ip in ips), ""])
