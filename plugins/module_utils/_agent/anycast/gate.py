# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which VIPs this host should have, by what is known of it. Pure.

A VIP is added once every check that it tracks is known to succeed, and removed as soon as one of them is known to fail,
or the host is held back. While something is not known, what is there stays and nothing is added: a daemon that has just
started, a file that cannot be read, a program that cannot be run say nothing of the balancer.

**The gate knows nothing of the other members.** With VRRP, who holds a VIP offers it to the others and keeps it if none
of them takes it. BGP has no such question: a router says nothing of whom else it has a route to. So, as with ExaBGP's
healthcheck and anycast-healthchecker, a failure that is known removes the VIP even if all members find the same one at
once. A check of something that all of them share, a gateway for instance, may take away the last path: track what
belongs to this host alone.
"""

from __future__ import annotations

from typing import Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..checks.checks_process import Result
from .settings import Vip

SERVES, FAILED, NOT_KNOWN, HELD_BACK = REASONS = ("serves", "failed", "not_known", "held_back")


class Record(NamedTuple):
    """Whether somebody holds this host back."""

    text: str = ""  # why; '' if nobody does
    known: bool = True  # whether all that may say so could be read


class Decision(NamedTuple):
    """What should become of a VIP."""

    wanted: Optional[bool]  # None: it stays as it is
    reason: str
    detail: str


def decide(vip: Vip, results: Mapping[str, Result], held_back: Record) -> Decision:
    """
    :param results: of the checks, by name; one without a result so far is not in it
    """
    if held_back.text:
        return Decision(False, HELD_BACK, held_back.text)
    found = {name: results[name] for name in vip.track if name in results and results[name].known}
    failed = [f"{name}: {result.detail or result.value}" for name, result in found.items() if not result.up]
    if failed:
        return Decision(False, FAILED, "; ".join(failed))
    missing = [name for name in vip.track if name not in found]
    if missing or not held_back.known:
        waits = [*missing, *([] if held_back.known else ["whether this host is held back"])]
        return Decision(None, NOT_KNOWN, f"not known: {', '.join(waits)}")
    return Decision(True, SERVES, "")


class Changes(NamedTuple):
    """What is to be done, in this order. Addresses have their prefix lengths."""

    remove: List[Tuple[Vip, List[str]]]
    add: List[Vip]
    strays: List[Tuple[Vip, List[str]]]  # the addresses of VIPs that stay, with other prefix lengths


def changes(
    decisions: Sequence[Tuple[Vip, Decision]], present: Mapping[str, Collection[str]], good: Collection[str]
) -> Changes:
    """
    :param present: on the interface: by the VIP's name, its address with each prefix length that it has there
    :param good: those of the addresses that are there as they should be
    """
    there: Dict[str, Collection[str]] = {vip.name: present.get(vip.name, ()) for vip, _decision in decisions}
    wanted = [vip for vip, decision in decisions if decision.wanted]
    unwanted = [vip for vip, decision in decisions if decision.wanted is False]
    strays = [(vip, [each for each in there[vip.name] if each != vip.address]) for vip in wanted]
    return Changes(
        remove=[(vip, [*there[vip.name]]) for vip in unwanted if there[vip.name]],
        add=[vip for vip in wanted if vip.address not in good],
        strays=[(vip, others) for vip, others in strays if others],
    )
