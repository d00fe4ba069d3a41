# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who holds a VIP after a failure, and how long nobody serves it at worst, by arithmetic.

The rules are RFC 3768 section 6.1 (version 2) and RFC 9568 section 6.1 (version 3), and keepalived's tracking:
without a weight a failed check puts the instance into FAULT, which gives the VIP up with priority 0; with a weight
it only moves the priority, and the Backup still waits for its whole Active_Down_Interval.
Times are in milliseconds.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

# What passes outside the protocol: systemd's reaction, the kernel adding the address, one gratuitous ARP.
SWITCH_MS = 60.0

EVENTS = (
    "haproxy_killed",
    "haproxy_stopped",
    "keepalived_stopped",
    "keepalived_killed",
    "host_cut",
    "haproxy_reloaded",
)


class Election(NamedTuple):
    """One VIP's candidates, best first, and the rules they share."""

    vip: str
    order: List[str]
    priorities: List[int]
    version: int
    interval: float  # seconds between two Advertisements
    preempt: bool
    weight: int  # of the haproxy check; 0 means FAULT
    detection: float  # seconds until a dead haproxy is known, at worst


def effective(priority: int, weight: int, healthy: bool) -> int:
    """keepalived adds a positive weight while the check passes and a negative one while it fails."""
    if priority == 255:  # the address owner's priority never moves
        return priority
    change = weight if (weight > 0) == healthy else 0
    return max(1, min(254, priority + change))


def skew_ms(election: Election, priority: int) -> float:
    """Skew_Time: the better the priority, the shorter the wait. Version 2 counts in whole seconds."""
    second = 1000.0 if election.version == 2 else election.interval * 1000
    return (256 - priority) * second / 256


def down_ms(election: Election, priority: int) -> float:
    """Active_Down_Interval: silence this long means that the holder is gone."""
    return 3 * election.interval * 1000 + skew_ms(election, priority)


def faults(election: Election) -> List[str]:
    """Say why a failed check cannot move the VIP, with the one change that mends it."""
    sentences = []
    for at, priority in enumerate(election.priorities):
        if priority in election.priorities[:at]:
            first = election.order[election.priorities.index(priority)]
            sentences.append(
                f"{election.vip}: {first} and {election.order[at]} both have priority {priority}, "
                "a tie that both would win: give each member its own."
            )
    if sentences or not election.weight or len(election.order) < 2:
        return sentences
    if not election.preempt:
        return [
            f"{election.vip}: without preemption a Backup ignores a holder whose priority drops, so weight "
            f"{election.weight} would never move the VIP: set the weight to 0 (FAULT)."
        ]
    return _stuck(election)


def _stuck(election: Election) -> List[str]:
    """Play a failed check on the holder against the best of the others."""
    failed = effective(election.priorities[0], election.weight, healthy=False)
    best = effective(election.priorities[1], election.weight, healthy=True)
    healthy = effective(election.priorities[0], election.weight, healthy=True)
    if healthy <= best:
        return [
            f"{election.vip}: with weight {election.weight} {election.order[0]} has {healthy} and {election.order[1]} "
            f"has {best}, so {election.order[0]} does not win even when healthy: lower the priorities."
        ]
    if failed < best:
        return []
    apart = election.priorities[0] - election.priorities[1]
    verb = "ties with" if failed == best else "stays above"
    return [
        f"{election.vip}: when haproxy dies on {election.order[0]}, its {failed} {verb} {election.order[1]}'s {best}, "
        f"so the VIP would never move: make the weight larger than {apart}, the distance of the priorities, "
        "or 0 (FAULT)."
    ]


def outages(election: Election) -> List[Dict[str, Any]]:
    """Return one line per single failure of the holder: ``{event, vip, before, after, outage_ms}`` at worst."""
    holder, successor = election.order[0], election.order[1]
    priority = effective(election.priorities[1], election.weight, healthy=True)
    given_up = skew_ms(election, priority)
    lost = down_ms(election, priority)
    check_fails = election.detection * 1000 + (lost if election.weight else given_up)
    waits = {
        "haproxy_killed": check_fails,
        "haproxy_stopped": check_fails,
        "keepalived_stopped": given_up,
        "keepalived_killed": lost,
        "host_cut": lost,
        "haproxy_reloaded": None,  # nothing moves
    }
    return [
        {
            "event": event,
            "vip": election.vip,
            "before": holder,
            "after": holder if wait is None else successor,
            "outage_ms": 0 if wait is None else round(wait + SWITCH_MS),
        }
        for event, wait in waits.items()
    ]
