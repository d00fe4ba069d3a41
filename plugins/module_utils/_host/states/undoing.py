# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Decides how a member returns to its state of before, by itself, without ever splitting the layout. Pure.

Members do not talk to each other here: the controller may be dead, and so may any of them. Each has a role, which the
controller gave it when it armed the undo:

- ``alone``: nothing changes on the link. It returns when its time has come.
- ``first``: it returns when its time has come, which is later than that of the others: by then their routers have
  stopped. If one has not, and advertises with settings that the old ones disagree with, the first one keeps its router
  as it is.
- ``other``: when its time has come its router stops, if the first one is heard and takes its VIPs, or if it serves
  nobody itself: neither it nor anybody else holds a VIP for as long as any router waits, as in FAULT. It starts again,
  with the old settings, when the link shows that it disagrees with nobody: another member advertises with the same old
  settings, and the time of the first one is over, so that no run can change those any more; or nobody has held the VIPs
  for longer than any router waits. Until then it stays stopped: fewer routers run, and the VIPs have one holder.

No return takes away the last router that serves. One that nobody is heard beside stays as it is, and so does one whose
VIPs nobody takes. Once the first one has kept its new settings, routers that have them as well start again with them.

After a boot the time of the others is not known any more. So a ``first`` then waits as an ``other`` does.

No heartbeat may let an ``other`` outlast the ``first``, however slow the controller is, and whenever it dies. So the
sign is announced to the others, the first one gets it, and then they get it, unless that has taken too long. They keep
the time that they have then, and another sign may be announced until it has come.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..._agent.vrrp.core.packet import PASSWORD_SIZE
from ..._shared.membership import carriers
from .snapshot import Instance

ALONE, FIRST, OTHER = ROLES = ("alone", "first", "other")
LATER_S = 10.0  # by which `first` comes after the others, at least; a part of it is for their routers to stop
RETURN_S = 8.0  # what a return takes, once its time has come: looks at the link, and the start of the programs

Heard = Mapping[str, Any]  # a router as `vrrp_routers` describes it


class Seen(NamedTuple):
    """What a look at the link has shown."""

    heard: Sequence[Heard]  # the routers that advertise, without this host's own
    answering: Mapping[str, Collection[str]]  # by VIP: the hardware addresses of the other hosts that answer for it
    serves: bool = False  # whether this host's own router advertises, or has VIPs here: one that hangs keeps them


def waits(role: str, booted: bool) -> bool:
    """Whether the router stays stopped until the link shows that it may start.

    :param booted: whether the host has booted since the undo was armed
    """
    return role == OTHER or (role == FIRST and booted)


def later(after: float, settle: float) -> float:
    """Return how many seconds after the others the ``first`` acts: more where the run is slow, and so are its hosts.

    By then the others have looked at the link, which takes as long as an interval and a half, and have stopped.
    """
    return max(LATER_S, after / 4, settle + LATER_S / 2)


def delay(role: str, after: float, settle: float) -> float:
    """Return how many seconds after the last heartbeat of the controller a member acts."""
    return after + later(after, settle) if role == FIRST else after


def is_in_time(role: str, after: float, settle: float, since: Optional[float]) -> bool:
    """Whether a member may accept a heartbeat: an ``other`` must still act well before the ``first`` does.

    :param since: how many seconds ago the sign was announced to it; None if it was not
    """
    return role != OTHER or (since is not None and since <= later(after, settle) / 2)


def first_is_over(after: float, settle: float) -> float:
    """Return how many seconds after the time of an ``other`` no run can change the ``first`` any more.

    Either all have accepted the same heartbeat, and the time of the first one is over. Or a member has not, and by
    now it has begun to return, or is about to: it refuses the next sign, and the run ends.
    """
    return 1.5 * later(after, settle)


def first_stays(after: float, settle: float) -> float:
    """Return how many seconds after the time of an ``other`` the ``first`` has returned, or has kept its settings.

    It may have had a heartbeat that the others have not had, just before their time came.
    """
    return after + first_is_over(after, settle) + later(after, settle)


def returned_within(role: str, after: float, settle: float) -> int:
    """Return within how many seconds of the last heartbeat of the controller all members have returned."""
    return int(after + (0 if role == ALONE else first_is_over(after, settle)) + RETURN_S)


def unserved(instances: Sequence[Instance], seen: Seen) -> List[str]:
    """Return the VIPs of these instances that no other member is heard advertising."""
    advertised = {address for router in seen.heard for address in router["addresses"]}
    return [vip for instance in instances for vip in vips_of(instance) if vip not in advertised]


def hears_first(first: Collection[str], instances: Sequence[Instance], seen: Seen) -> bool:
    """Whether the first one is heard: its router runs, and takes the VIPs of one that stops.

    :param first: its addresses
    :param instances: those that run here
    """
    vips = {vip for instance in instances for vip in vips_of(instance)}
    return any(router["source"] in first and vips & {*router["addresses"]} for router in seen.heard)


def reason_not_to_stop(
    first: Collection[str], instances: Sequence[Instance], seen: Seen, waited: float
) -> Optional[str]:
    """Return why the router of an ``other`` must not stop; '' if it may, None if only another look tells.

    Where the first one is not heard, it may if it serves nobody. It is in FAULT then, and could end that beside the
    first one once that has returned.

    :param instances: those that run here
    :param waited: for how many seconds this has looked, and seen no holder
    """
    if hears_first(first, instances, seen):
        return ""
    if seen.serves or any(holders_of(each, seen) for each in instances):
        return "the member that returns first is not heard, and might not take the VIPs"
    return "" if waited >= settle(instances) else None


def disagreeing(instances: Sequence[Instance], seen: Seen) -> List[str]:
    """Return the routers that advertise VIPs of these instances with other settings, by their addresses."""
    return [
        router["source"]
        for instance in instances
        for router in seen.heard
        if {*router["addresses"]} & {*vips_of(instance)} and not agrees(router, instance)
    ]


class Patience:
    """Says from one look at the link to the next whether the router may start, and with which settings."""

    def __init__(
        self,
        then: Sequence[Instance],
        settle: float,
        now: Sequence[Instance] = (),
        stopped_at: Optional[float] = None,
        trusts_from: float = 0.0,
        stays_from: float = 0.0,
        served: bool = True,
    ) -> None:
        """
        :param then: the instances of the old state
        :param settle: how many seconds a router waits at most before it takes VIPs that nobody holds
        :param now: the instances of the present settings
        :param stopped_at: when this return has stopped the router; None if it did not run
        :param trusts_from: from when on nobody who advertises can get other settings; as ``at``
        :param stays_from: from when on who advertises the present settings goes on with them; as ``at``
        :param served: False if the router was stopped because it served nobody, which may be so of the first one, too
        """
        self._then, self._now = then, now
        self._settle, self._stopped_at = settle, stopped_at
        self._trusts_from, self._stays_from = trusts_from, stays_from
        self._served = served
        was_asked = stopped_at is not None and served
        self._untaken = {vip for instance in now for vip in vips_of(instance)} if was_asked else set()
        self._free_since: Dict[int, float] = {}  # by the number of an instance whose VIPs nobody holds

    def hindrance(self, seen: Seen, at: float) -> str:
        """Return why the router may not start yet with the old settings; '' if it may."""
        self._see(seen)
        found = [self._hindrance(number, seen, at) for number in range(len(self._then))]
        return next(filter(None, found), "")

    def reason_to_stay(self, seen: Seen, at: float) -> str:
        """Return why the router starts again with its present settings; '' if it does not."""
        untaken = self.untaken(seen)
        if disagreeing(self._now, seen):
            return ""
        if untaken and self._stopped_at is not None and at >= self._stopped_at + self._settle:
            return f"nobody has taken {', '.join(untaken)}"
        agreeing = [router["source"] for router in seen.heard if any(agrees(router, each) for each in self._now)]
        if agreeing and at >= self._stays_from:
            return f"{agreeing[0]} keeps running with the current settings"
        return ""

    def untaken(self, seen: Seen) -> List[str]:
        """Return the VIPs that nobody has held since the router was stopped."""
        self._see(seen)
        return sorted(self._untaken)

    def _see(self, seen: Seen) -> None:
        self._untaken -= {vip for router in seen.heard for vip in router["addresses"]}
        self._untaken -= {vip for vip, macs in seen.answering.items() if macs}

    def _hindrance(self, number: int, seen: Seen, at: float) -> str:
        instance = self._then[number]
        agree = any(agrees(router, instance) for router in seen.heard)
        holders = () if agree else holders_of(instance, seen)
        if agree or holders:
            self._free_since.pop(number, None)
        if holders:
            return f"{', '.join(vips_of(instance))} is held with other settings, by {holders[0]}"
        if agree:
            return "" if at >= self._trusts_from else "a run may still change the settings of the first member"
        waited, wanted = at - self._free_since.setdefault(number, at), 2 * self._settle
        if waited < wanted:
            return f"nobody has held the VIPs for {waited:.0f} s of {wanted:.0f}"
        is_first_over = self._served or at >= self._trusts_from
        return "" if is_first_over else "the first member may still take the VIPs with other settings"


def agrees(router: Heard, instance: Instance) -> bool:
    """Whether an Advertisement is one that a router with these settings accepts as of its own Virtual Router."""
    same = router["vrid"] == instance["vrid"] and router["version"] == instance["version"]
    if not same or sorted(router["addresses"]) != vips_of(instance):
        return False
    if instance["version"] != 2:
        return True
    # keepalived fills the rest of the field with NULs.
    password = str(router.get("auth_pass", "")).rstrip("\0")
    return password == instance["auth_pass"][:PASSWORD_SIZE] and router["interval"] == instance["advert_interval"]


def holders_of(instance: Instance, seen: Seen) -> List[str]:
    """Return who advertises the VIPs of an instance, or answers for them."""
    own = vips_of(instance)
    holders = [router["source"] for router in seen.heard if set(router["addresses"]) & set(own)]
    return holders + [mac for vip in own for mac in seen.answering.get(vip, ())]


def vips_of(instance: Instance) -> List[str]:
    return sorted(address.partition("/")[0] for address in instance["addresses"])


def settle(instances: Sequence[Instance]) -> float:
    """Return how many seconds a router waits at most before it takes VIPs that nobody holds, and one for the host."""
    return 4 * max((each["advert_interval"] for each in instances), default=0) + 1


def links(instances: Sequence[Instance]) -> Dict[str, List[str]]:
    """Return the VIPs on each interface, where who holds them answers."""
    found: Dict[str, List[str]] = {}
    for instance in instances:
        for vip, interface in sorted(carriers(instance).items()):
            found.setdefault(interface, []).append(vip)
    return found


def interfaces(instances: Sequence[Instance]) -> List[str]:
    """Return the interfaces by which the routers hear each other."""
    return list(dict.fromkeys(instance["interface"] for instance in instances))
