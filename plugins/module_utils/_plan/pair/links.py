# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a user should know of a pair whose members advertise on another link than that of their clients. Pure."""

from __future__ import annotations

from typing import List, Mapping, Sequence

from ..layouts.checked_vips import CheckedVips
from ..layouts.checks import GATEWAY
from ..members.subnets import Placement
from ..model.plan import Vip

Placements = Mapping[str, Mapping[str, Placement]]  # by member and address of a VIP
VARIABLE = "pair_vrrp_interface"


def apart(name: str, vip: Vip, placements: Placements, senders: Placements) -> bool:
    """Whether a member advertises a VIP on another interface than that which carries it."""
    sender, carrier = (each.get(name, {}).get(vip.address) for each in (senders, placements))
    return bool(sender and carrier and sender.interface != carrier.interface)


def warnings(vips: Sequence[Vip], placements: Placements, senders: Placements, checked: CheckedVips) -> List[str]:
    """Return what neither link shows: that VRRP alone is cut, and that the clients' network alone is."""
    away = [vip for vip in vips if any(apart(name, vip, placements, senders) for name in vip.order)]
    if not away:
        return []
    addresses = ", ".join(vip.address for vip in away)
    found = [
        f"{VARIABLE}: while that link alone is cut, each member holds {addresses}, and clients reach one of them by "
        "chance (as of `vrrp lost` below): give it two paths, as a bond, or let VRRP run on the clients' link."
    ]
    for vip in away:
        if not any(check.kind == GATEWAY for name in vip.order for check in checked.of(name, vip)):
            found.append(
                f"{VARIABLE}: a failure of the clients' network beyond a member's own port moves no VIP, because VRRP "
                "goes on: name a gateway of that network in pair_checks."
            )
            break
    return found
