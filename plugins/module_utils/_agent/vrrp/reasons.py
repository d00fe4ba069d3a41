# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Why a router is in FAULT, in words: the state machine knows only which of its readings are a fault."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from ..checks.results import CheckState
from ..net import netlink
from . import links
from .core import sync_group, tracking
from .router import ADDRESSES, Router, link_reading


def of_fault(router: Router, members: Sequence[Router], known: links.Links, checks: Mapping[str, CheckState]) -> str:
    """
    :param members: of its sync group
    :param checks: the state of each check that has a result
    """
    return "; ".join(
        _cause(name, router, members, known, checks)
        for name, reading in router.state.readings.items()
        if reading is tracking.FAULT
    )


def _cause(
    name: str, router: Router, members: Sequence[Router], known: links.Links, checks: Mapping[str, CheckState]
) -> str:
    for interface, found in ((router.instance.interface, router.egress), *router.carriers.items()):
        if name == link_reading(interface):
            return _of_link(interface, found.link, known)
    if name == router.source_reading:
        return _of_source(router)
    if name == ADDRESSES:
        return f"the kernel refuses {router.refused}"
    if name == sync_group.GROUP:
        return f"{', '.join(_faulty(members))} of its sync group is in Fault"
    detail = checks[name].result.detail if name in checks else ""
    return f"{name} failed: {detail}" if detail else f"{name} failed"


def _of_link(interface: str, before: Optional[netlink.Link], known: links.Links) -> str:
    link, reading = known.named(interface), link_reading(interface)
    if link is None:
        return f"{reading} is not there"
    if not link.up:
        return f"{reading} is down"
    if before and before.index != link.index:
        return f"{reading} is another one now"
    return f"{reading} has no socket for VRRP"


def _of_source(router: Router) -> str:
    """An address that still waits for duplicate address detection cannot be used either."""
    instance = router.instance
    if instance.source:
        return f"{instance.source}, the source address, is not on this host"
    kind = "link-local" if instance.family == 6 else "IPv4"
    return f"{router.link_reading} has no {kind} address to send from"


def _faulty(members: Sequence[Router]) -> Sequence[str]:
    """Return the members that are in FAULT for a reason of their own."""
    return [member.name for member in members if tracking.in_fault({**member.state.readings, sync_group.GROUP: 0})]
