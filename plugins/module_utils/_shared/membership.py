# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who has been a member of a layout, and may still run, according to the members and not to the inventory. Pure.

Each run leaves a record of the members on all of them. Where there is none yet, the peers in their configurations tell.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, Sequence, Set, Tuple

Members = Mapping[str, List[str]]  # the addresses of each, the one to connect to first


def vips(instances: Iterable[Mapping[str, Any]]) -> Set[str]:
    """Return the addresses of instances without their prefix lengths."""
    return {address.partition("/")[0] for instance in instances for address in instance["addresses"]}


def carriers(instance: Mapping[str, Any]) -> Dict[str, str]:
    """Return for each address of an instance, without its prefix length, the interface that carries it."""
    texts = (address.partition(" dev ") for address in instance["addresses"])
    return {address.partition("/")[0]: interface or instance["interface"] for address, _dev, interface in texts}


def former(
    names: Collection[str],
    present: Collection[str],
    records: Iterable[Members],
    instances: Sequence[Mapping[str, Any]],
) -> Iterator[Tuple[str, List[str]]]:
    """Yield the name and the addresses of each host that the members know as one of them, and that is none.

    A member that has only been renamed still has its address, and one with a new address still has its name.

    :param names: of the members
    :param present: their addresses
    :param records: as runs have left them on the members
    :param instances: those in their configurations, whose peers are members and whose sources are their own addresses
    """
    explained = {*present, *(instance.get("source", "") for instance in instances)}
    for record in records:
        for name, recorded in record.items():
            explained.update(recorded)
            if name not in names and recorded and not {*present} & {*recorded}:
                yield name, recorded
    for peer in (peer for instance in instances for peer in instance.get("peers", [])):
        if peer not in explained:
            yield peer, [peer]
