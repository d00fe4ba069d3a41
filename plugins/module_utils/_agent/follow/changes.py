# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What has to change in a balancer's servers, so that they are the nodes. Pure.

An address is what connections go to, so a server whose address is wanted stays as it is, under the name that it has: a
node that is renamed touches no connection.
"""

from __future__ import annotations

import ipaddress
from typing import List, NamedTuple, Sequence, Set, Tuple

from .settings import Server


class Refused(Exception):
    """A balancer cannot get the servers that it should have; the text says why, and what to do."""


class Changes(NamedTuple):
    """In the order in which they are made: the service never has fewer servers than before or after."""

    added: Tuple[Server, ...] = ()
    moved: Tuple[Server, ...] = ()  # with their new address
    dropped: Tuple[Server, ...] = ()


class Applied(NamedTuple):
    """What a balancer has done."""

    lines: List[str]  # for the log, one for each change
    again: bool = False  # whether it must be called again soon, because sessions with a server last


def between(present: Sequence[Server], wanted: Sequence[Server]) -> Changes:
    """Return what makes the present servers the wanted ones."""
    addresses = {server.address for server in wanted}
    missing = [server for server in wanted if server.address not in {each.address for each in present}]
    leaving = {server.name: server for server in present if server.address not in addresses}
    moved = tuple(server for server in missing if server.name in leaving)
    names = {server.name for server in present}
    added = []
    for server in missing:
        if server not in moved:
            added.append(Server(_free(server.name, names), server.address))
            names.add(added[-1].name)
    dropped = [server for name, server in leaving.items() if name not in {each.name for each in moved}]
    return Changes(tuple(added), moved, tuple(dropped))


def _free(name: str, taken: Set[str]) -> str:
    """Return a name that no server has."""
    number, found = 2, name
    while found in taken:
        number, found = number + 1, f"{name}-{number}"
    return found


def canonical(address: str) -> str:
    """Return an address as Python writes it, so that equal ones are equal texts; any other text as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


def sentences(place: str, changes: Changes, count: int) -> List[str]:
    """Return a line of the log for each change."""
    left = f"{count} server{'' if count == 1 else 's'}"
    return [
        *(f"{place}: {each.name} at {each.address} is added: {left}." for each in changes.added),
        *(f"{place}: {each.name} is at {each.address} now: {left}." for each in changes.moved),
        *(f"{place}: {each.name} at {each.address} leaves: {left}." for each in changes.dropped),
    ]
