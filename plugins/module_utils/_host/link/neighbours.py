# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts answer for an address on the link: ARP for IPv4, neighbour solicitation for IPv6.

The packets and the socket are the agent's.
"""

from __future__ import annotations

import ipaddress
import json
import select
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ..._agent.net.neighbours import NeighbourProber


class Link(NamedTuple):
    """How the kernel would send to an address: the interface, or why it cannot be probed from here.

    :ivar router: through which it sends
    """

    interface: str
    reason: str
    router: str = ""


def link_to(route: str) -> Link:
    """Read ``ip -j route get ADDRESS``: only an address on the same link can be probed."""
    try:
        found: Dict[str, Any] = (json.loads(route or "[]") or [{}])[0]
    except ValueError:
        found = {}
    device = str(found.get("dev", ""))
    if not device:
        return Link("", "there is no route to it from here")
    if found.get("type") == "local" or device == "lo":
        return Link("", "this host holds the address itself")
    via = found.get("gateway") or (found.get("via") or {}).get("host")
    if via:
        return Link("", f"it is not on a link of this host, but behind the router {via}", str(via))
    return Link(device, "")


def wait_readable(probers: Sequence[Any], seconds: float) -> None:
    select.select(list(probers), [], [], max(0.0, seconds))


def holders_on_link(
    addresses_by_interface: Mapping[str, Sequence[str]],
    wait_s: float,
    clock: Callable[[], float] = time.monotonic,
    make: Callable[[str, int], Any] = NeighbourProber,
    wait: Callable[[Sequence[Any], float], None] = wait_readable,
) -> Dict[str, List[str]]:
    """Return the MACs that answer for each address; an empty list where none does.

    Listens for the whole ``wait_s``, because a second holder may be slower, and probes again half-way, because a packet
    may be lost.
    """
    targets = _by_family(addresses_by_interface)
    found: Dict[str, Set[str]] = {str(a): set() for many in addresses_by_interface.values() for a in many}
    probers: Dict[Tuple[str, int], Any] = {}
    try:
        for key in targets:
            probers[key] = make(*key)
        begin = clock()
        for until in (begin + wait_s / 2, begin + wait_s):
            for key, names in targets.items():
                for address in names:
                    probers[key].probe(address)
            _listen(probers, targets, found, until, clock, wait)
    finally:
        for prober in probers.values():
            prober.close()
    return {address: sorted(macs) for address, macs in found.items()}


Targets = Dict[Tuple[str, int], Dict[str, str]]


def _by_family(addresses_by_interface: Mapping[str, Sequence[str]]) -> Targets:
    """Return (interface, version) -> {address as the kernel writes it: address as the caller wrote it}."""
    targets: Targets = {}
    for interface, addresses in addresses_by_interface.items():
        for written in addresses:
            address = ipaddress.ip_address(written)
            targets.setdefault((interface, address.version), {})[str(address)] = str(written)
    return targets


def _listen(
    probers: Mapping[Tuple[str, int], Any],
    targets: Targets,
    found: Dict[str, Set[str]],
    until: float,
    clock: Callable[[], float],
    wait: Callable[[Sequence[Any], float], None],
) -> None:
    while True:
        left = until - clock()
        # Even with no time left it looks once: a reply that is there already came in time.
        wait(list(probers.values()), left)
        for key, prober in probers.items():
            for address, mac in prober.replies():
                if address in targets[key]:
                    found[targets[key][address]].add(mac)
        if left <= 0:
            return
