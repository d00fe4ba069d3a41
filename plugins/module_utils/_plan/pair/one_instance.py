# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a VRRP instance that carries all VIPs of a family cannot do. Pure."""

from __future__ import annotations

from typing import Iterator, List, Mapping, Sequence

from ..._agent.config.schema import Faults
from ..layouts.vips import of_family
from ..members.subnets import Placement
from ..model.plan import Vip

VARIABLE = "pair_one_instance"
# How many addresses an advertisement has at most: one byte counts them (RFC 9568, 5.2.5), and 1,500 bytes have room for
# no more of IPv6, as keepalived counts: it ends with one more.
MOST = {4: 255, 6: 89}


def faults(vips: Sequence[Vip], placements: Mapping[str, Mapping[str, Placement]]) -> Faults:
    return [
        fault
        for version, most in MOST.items()
        for own in [of_family([*vips], version)]
        for fault in [*_too_many(own, most), *_elsewhere(own, placements)]
    ]


def _too_many(vips: List[Vip], most: int) -> Iterator[str]:
    if len(vips) > most:
        yield (
            f"{VARIABLE}: there are {len(vips)} IPv{vips[0].version} VIPs, and an advertisement has room for {most}: "
            "set it to false, or name fewer."
        )


def _elsewhere(vips: List[Vip], placements: Mapping[str, Mapping[str, Placement]]) -> Iterator[str]:
    """An instance watches one interface: a VIP on another one would stay where that is down."""
    for name, own in placements.items():
        found = {own[vip.address].interface: vip.address for vip in reversed(vips) if vip.address in own}
        if len(found) > 1:
            places = ", ".join(f"{address} on {interface}" for interface, address in reversed(found.items()))
            yield f"{VARIABLE}: {name} carries {places}, and an instance watches one interface: set it to false."
            return
