# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The records of a zone as lines of a zone file, as configuration of dnsmasq and as a script for nsupdate. Pure."""

from __future__ import annotations

import itertools
from typing import Iterator, List, Tuple

from .records import Record, canonical

# A name with a CNAME has no other records, and a server ignores an A that is added to it (RFC 2136, 3.4.2.2).
SUPERSEDED = {
    "A": ("A", "AAAA", "CNAME"),
    "AAAA": ("A", "AAAA", "CNAME"),
    "PTR": ("PTR",),
    "SRV": ("SRV", "CNAME"),
}


def zone_file(zone: str, records: List[Record]) -> str:
    """Return the lines to include in a zone file. SOA and NS are left to the zone's owner."""
    width = max(len(record.name) for record in records)
    lines = [f"{name:<{width}} {ttl} IN {kind:<4} {value}" for _zone, name, kind, value, ttl in records]
    return "\n".join([f"; {zone}", *lines, ""])


def dnsmasq(zone: str, records: List[Record]) -> str:
    lines = [line for name, same in _by_name(records) for line in _of_dnsmasq(name, same)]
    return "\n".join([f"# {zone[:-1]}", *lines, ""])


def _of_dnsmasq(name: str, records: List[Record]) -> Iterator[str]:
    """Yield a name's lines. ``address=`` is dnsmasq's only wildcard; it includes the bare domain, and has no TTL."""
    kind = records[0].type
    if kind == "PTR":
        yield from (f"ptr-record={name[:-1]},{record.value[:-1]}" for record in records)
        return
    wildcard = name.startswith("*.")
    bare = name[2:-1] if wildcard else name[:-1]
    # Since 2.86 dnsmasq forwards a query for the family of which a name has no address, to a server that may answer
    # that there is no such name.
    yield f"local=/{bare}/"
    for record in records:
        if kind == "SRV":
            priority, weight, port, target = record.value.split()
            yield f"srv-host={bare},{target[:-1]},{port},{priority},{weight}"
        else:
            yield f"address=/{bare}/{record.value}" if wildcard else f"host-record={bare},{record.value},{record.ttl}"


def nsupdate(zone: str, records: List[Record]) -> str:
    """Return an update for each parent of names, of which a server applies all or nothing (RFC 2136, 3.4).

    An update is of one zone. None has a ``zone`` line, because nsupdate asks the server in which zone its first name
    is; names with one parent are in one zone, and ``*.apps`` is in another one than ``api`` if ``apps`` is a zone.
    ``answer`` names that zone, which no error of nsupdate does. An empty line would mean ``send``.
    """
    lines = [f"; {zone}"]
    for _parent, group in itertools.groupby(sorted(_by_name(records), key=_parent_of), key=_parent_of):
        siblings = list(group)
        lines += [f"update delete {name} {kind}" for name, same in siblings for kind in SUPERSEDED[same[0].type]]
        same_zone = [record for _name, same in siblings for record in same]
        lines += [f"update add {name} {ttl} {kind} {value}" for _zone, name, kind, value, ttl in same_zone]
        lines += ["send", "answer"]
    return "\n".join([*lines, ""])


def _parent_of(name_and_records: Tuple[str, List[Record]]) -> List[str]:
    return canonical(name_and_records[0])[:-1]


def _by_name(records: List[Record]) -> Iterator[Tuple[str, List[Record]]]:
    for name, group in itertools.groupby(records, key=lambda record: record.name):
        yield name, list(group)
