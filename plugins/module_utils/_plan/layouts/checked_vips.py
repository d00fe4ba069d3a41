# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which VIPs of a layout depend on which of the user's checks, on each member, and what that means. Pure."""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from ..._agent.config.schema import Faults, parted
from ..members.hosts import Member
from ..members.subnets import Placement
from ..model import destinations
from ..model.destinations import Destination, of_url
from ..model.plan import Vip
from .checks import GATEWAY, PACKAGES, URL, Check


class CheckedVips(NamedTuple):
    """The VIPs, where each member would carry them, and what is checked there."""

    place: str  # the variable of the checks
    checks: List[Check]
    vips: List[Vip]
    placements: Dict[str, Dict[str, Placement]]  # a member lacks a VIP that it cannot carry, which is a fault
    roles: Mapping[str, str] = {}  # of the VIPs, by the names of their instances
    in_group: bool = False  # whether all VIPs are in one sync group

    def of(self, name: str, vip: Vip) -> List[Check]:
        """Return the checks that a VIP depends on, on a member."""
        return [check for check in self.checks if self._depends(check, name, vip)]

    def _depends(self, check: Check, name: str, vip: Vip) -> bool:
        """Whether a VIP depends on a check: not on that of its own interface, which is tracked anyway."""
        placement = self.placements[name].get(vip.address)
        is_own = check.is_interface and placement is not None and check.target == placement.interface
        return check.vips in ("", self.roles.get(vip.name)) and not is_own

    def tracked(self, name: str, vip: Vip) -> Dict[str, List[Dict[str, Any]]]:
        """Return what an instance tracks, by the kind of the trackers."""
        found = self.of(name, vip)
        return {
            "track_scripts": [check.tracked for check in found if not check.is_interface],
            "track_interfaces": [check.tracked for check in found if check.is_interface],
        }

    def scripts(self, name: str) -> List[Dict[str, Any]]:
        return [check.script for check in self._on(name) if not check.is_interface]

    def _on(self, name: str) -> List[Check]:
        """Return the checks of every VIP that a member may hold, each once."""
        held = [vip for vip in self.vips if name in vip.order]
        return [check for check in self.checks if any(self._depends(check, name, vip) for vip in held)]

    def moved_by(self, check: Check) -> List[str]:
        """Return the instances that a failure moves."""
        moved = {vip.name: vip for vip in self.vips if any(self._depends(check, name, vip) for name in vip.order)}
        return list(dict.fromkeys(vip.name for vip in self.vips)) if moved and self.in_group else [*moved]

    def watched(self, own: Collection[str]) -> Dict[str, Dict[str, Any]]:
        """Return each check's failure, as `forecast.forecast` takes it.

        :param own: what else the layout tracks
        """
        return {
            check.name: {
                "instances": self.moved_by(check),
                "fatal": [f"{check.name}_failed"],
                "harmless": {},
                "blind_trackers": [*own, *(name for name in self.names if name != check.name)],
                "hangs": True,  # at worst each run waits until its timeout: a gateway that is silent
                "failure": f"the check {check.name} fails",
            }
            for check in self.checks
        }

    @property
    def names(self) -> List[str]:
        return [check.name for check in self.checks]

    @property
    def weighted(self) -> List[str]:
        return [check.name for check in self.checks if check.weight]

    def sends(self, answered: Mapping[str, Sequence[str]], whole: str) -> Iterator[Destination]:
        """Yield which addresses are asked.

        :param answered: what the layout's own resolver answers
        :param whole: what the members are together
        """
        for check in self.checks:
            place, moved = f"{self.place} ({check.name}).{check.kind}", [] if check.weight else self.moved_by(check)
            found: List[Destination] = []
            if check.kind == URL:
                found = of_url(place, check.target, answered)
            elif check.kind == GATEWAY:
                found = [Destination(destinations.GATEWAY, place, check.target, f"name a host outside the {whole}.")]
            reached = [(vip.address, 0) for vip in self.vips if vip.name in moved]
            yield from (each._replace(sender=place, reached=reached) for each in found)

    def faults(self) -> Faults:
        """Refuse what would say nothing: an interface that is always tracked."""
        return [
            f"{self.place} ({check.name}) is the interface of all {check.dependents}, which is always tracked: leave "
            "it out."
            for check in self.checks
            if check.is_interface and not self.moved_by(check)
        ]

    def missing_programs(self, member: Member, engine: str) -> Faults:
        """Return which programs the checks need and a member lacks."""
        needed = [(check, check.program(engine)) for check in self._on(member["name"])]
        return [
            f"{member['name']}: {program} is missing, which {self.place} ({check.name}) needs: install "
            f"{PACKAGES[program]}."
            for check, program in needed
            if program in member["host"].get("missing_programs", [])
        ]

    def at_once(self, preempt: bool) -> List[str]:
        """Return a warning for each check that takes the VIPs from all members, where its target fails for all of them.

        A weight helps only where a member with a higher priority preempts, and not in a sync group.
        """
        mend = ": a weight such as -50 lets one keep them." if preempt and not self.in_group else "."
        return [
            f"{self.place} ({check.name}): while {parted('url', check.target)[0]} answers none of the members, none of "
            f"them holds the {check.dependents}{mend}"
            for check in self.checks
            if check.is_of_all and not check.weight
        ]
