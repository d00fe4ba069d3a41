# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One DNS record, and the order of several. Pure.

All names are fully qualified with a final dot (RFC 1035, 5.1): such a line means the same in every zone file, whatever
``$ORIGIN`` is there.
"""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

Hosts = Dict[str, List[str]]  # addresses by a host's name


class Record(NamedTuple):
    """One record, and the zone that it usually belongs to."""

    zone: str
    name: str
    type: str
    value: str
    ttl: int


def forward(zone: str, hosts: Hosts, ttl: int) -> List[Record]:
    """Return the A and AAAA of hosts, whose names are below the zone."""
    return [
        Record(f"{zone}.", f"{name}.{zone}.", "AAAA" if ":" in address else "A", address, ttl)
        for name, addresses in hosts.items()
        for address in addresses
    ]


def reverse(zone: str, hosts: Hosts, ttl: int) -> List[Record]:
    """Return the PTRs, in the usual reverse zones: of a /24 (RFC 1035, 3.5) and of a /64 (RFC 3596, 2.5)."""
    found = []
    for name, addresses in hosts.items():
        for address in addresses:
            pointer = ipaddress.ip_address(address).reverse_pointer + "."
            cut = pointer.split(".", 16 if ":" in address else 1)[-1]
            found.append(Record(cut, pointer, "PTR", f"{name}.{zone}.", ttl))
    return found


def service(zone: str, name: str, port: int, hosts: Iterable[str], ttl: int) -> List[Record]:
    """Return the SRVs (RFC 2782) of a service that each of the hosts has, with equal priorities and weights."""
    return [Record(f"{zone}.", f"{name}.{zone}.", "SRV", f"0 10 {port} {host}.{zone}.", ttl) for host in hosts]


def addresses(records: Iterable[Record]) -> Hosts:
    """Return the addresses by the name that has them, without its final dot."""
    found: Hosts = {}
    for record in records:
        if record.type in ("A", "AAAA"):
            found.setdefault(record.name[:-1], []).append(record.value)
    return found


def by_zone(records: Iterable[Record]) -> Dict[str, List[Record]]:
    """Sort the records, so that the text does not depend on the order of the input."""
    ordered = sorted(set(records), key=_order)
    return {zone: list(group) for zone, group in itertools.groupby(ordered, key=lambda record: record.zone)}


def _order(record: Record) -> Tuple[Any, ...]:
    """Return the sort key: forward zones before reverse ones, then the canonical order of RFC 4034, 6.1."""
    address = int(ipaddress.ip_address(record.value)) if record.type in ("A", "AAAA") else 0
    zone = (record.zone.endswith(".arpa."), canonical(record.zone))
    return (*zone, canonical(record.name), address, canonical(record.value))


def canonical(name: str) -> List[str]:
    """Return the labels of a name from the root down, the order in which names are compared."""
    return name.split(".")[::-1]
