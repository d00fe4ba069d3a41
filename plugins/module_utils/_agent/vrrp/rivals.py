# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Other routers that stay Active beside ours: two hosts hold the addresses, and clients reach one or the other.

Two Advertisements of a lower priority are no rival's: a router that yields sends a last one, so that the winner
announces itself again (keepalived's vrrp_higher_prio_send_advert), and keepalived's hook sends another one.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional

from .core import machine

FEWEST = 3  # Advertisements, each in time after the one before
MAX_RIVALS = 16  # of one router, and as many reports within MINUTE: the sources of multicast can be forged
MINUTE = 60 * machine.SECOND


class Rival(NamedTuple):
    """Another router that advertises while ours is Active."""

    source: str
    priority: int
    since: float  # seconds since 1970
    advertisements: int  # in a row
    reported: bool
    over_at: int  # when it counts as gone unless it advertises again, in microseconds of the loop's clock


class Rivals:
    """The rivals of one router."""

    def __init__(self) -> None:
        self._known: Dict[str, Rival] = {}
        self._reports: List[int] = []  # when rivals were reported within the last minute

    def record(self, received: machine.Received, now: int, wall: float) -> Optional[Rival]:
        """Note an Advertisement of a lower priority; return the rival if it is to be reported now."""
        self._forget_old(now)
        source, advertisement = received.source, received.advertisement
        before = self._known.get(source)
        if before is None and len(self._known) >= MAX_RIVALS:
            return None
        over_at = now + machine.MISSED * advertisement.interval + machine.SECOND // 10
        since, count, reported = (before.since, before.advertisements, before.reported) if before else (wall, 0, False)
        reports = not reported and count + 1 >= FEWEST and self._may_report(now)
        rival = Rival(source, advertisement.priority, since, count + 1, reported or reports, over_at)
        self._known[source] = rival
        return rival if reports else None

    def _may_report(self, now: int) -> bool:
        self._reports = [at for at in self._reports if now - at < MINUTE]
        if len(self._reports) >= MAX_RIVALS:
            return False
        self._reports.append(now)
        return True

    def present(self, now: int) -> List[Rival]:
        """Return those that are still there."""
        self._forget_old(now)
        return [rival for rival in self._known.values() if rival.advertisements >= FEWEST]

    def _forget_old(self, now: int) -> None:
        self._known = {source: rival for source, rival in self._known.items() if now < rival.over_at}
