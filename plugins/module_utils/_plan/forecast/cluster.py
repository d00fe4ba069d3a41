# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The members of a plan as the simulator takes them. Times are integers in microseconds."""

from __future__ import annotations

import ipaddress
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Tuple

from ..._agent.vrrp.core import machine, offers, packet, tracking
from ..._shared import engines
from ..._shared.membership import carriers
from ..model.links import virtual_router
from . import simulator

SECOND = machine.SECOND
Named = Dict[str, Dict[str, Any]]
# After so long the unit of a killed keepalived has removed its addresses and resigned: systemd reacts, Python starts.
RESIGNS_AFTER = SECOND // 5


class Tracker(NamedTuple):
    """A script, file or interface that one instance tracks, and that follows the state of a service."""

    name: str
    alive: tracking.PriorityDelta
    dead: tracking.PriorityDelta
    down_detection: int  # how long it takes to notice, at worst
    up_detection: int
    hang_detection: int  # the same for a service that does not answer
    offers: bool = False  # whether its failure also makes the router offer its addresses to the others

    def detection(self, hangs: bool) -> int:
        return self.hang_detection if hangs else self.down_detection


class Cluster(NamedTuple):
    """The members of a plan as the simulator takes them."""

    instances: List[simulator.Instance]
    trackers: List[List[Tracker]]  # of each instance
    vips: Dict[str, List[int]]  # by name: the instances that may hold it
    addresses: Dict[str, str]  # by name: what to call it
    groups: List[Tuple[int, ...]]  # the instances of each sync group of a member

    settling_time: int = 0  # how long the effects of a failure, or of its end, last at most

    @property
    def members(self) -> List[str]:
        return list(dict.fromkeys(instance.member for instance in self.instances))

    def priority(self, at: int) -> int:
        """Return the priority that an instance has while nothing fails."""
        trackers = {tracker.name: tracker.alive for tracker in self.trackers[at]}
        return tracking.effective(self.instances[at].router.priority, trackers)

    def tied(self, vip: str, member: str) -> List[str]:
        """Return the members that have the same priority as this one for a VIP: the first that advertises wins."""
        priorities = {self.instances[at].member: self.priority(at) for at in self.vips[vip]}
        return [name for name in priorities if name != member and priorities[name] == priorities[member]]

    def only(self, vips: Collection[str], members: Collection[str]) -> Cluster:
        """Return the instances of some VIPs on some members; what follows from all of them stays."""
        wanted = [at for at, each in enumerate(self.instances) if each.name in vips and each.member in members]
        numbers = {at: number for number, at in enumerate(wanted)}
        found = self._replace(
            instances=[self.instances[at] for at in wanted],
            trackers=[self.trackers[at] for at in wanted],
            vips={},
            groups=[tuple(numbers[at] for at in group) for group in self.groups if numbers.keys() >= set(group)],
        )
        for at, instance in enumerate(found.instances):
            found.vips.setdefault(instance.name, []).append(at)
        return found


def cluster_of(plan: Dict[str, Any]) -> Cluster:
    """Return the cluster of a plan.

    :param plan: ``{members: {NAME: {instances, links, engine, resigns_when_killed, sync_groups}},
        track: {scripts, files}}``,
        the instances as `read_instances` returns them, the links as `links.of_members` does, and of the files those by
        which a process says what it asks as a script would; a member without an engine runs keepalived, without this
        collection's unit
    """
    track = {kind: {each["name"]: each for each in found} for kind, found in plan.get("track", {}).items()}
    found = Cluster([], [], {}, {}, [])
    labels = {vip["name"]: vip["address"] for vip in reversed(plan.get("vips", []))}  # its first one is its label
    for member, planned in plan["members"].items():
        numbers = {instance["name"]: at for at, instance in enumerate(planned["instances"], len(found.instances))}
        groups = planned.get("sync_groups", [])
        resigns = planned.get("engine") == engines.NATIVE and planned.get("resigns_when_killed", True)
        found.groups.extend(tuple(numbers[name] for name in group["instances"]) for group in groups)
        for instance in planned["instances"]:
            trackers = _trackers(instance, track.get("scripts", {}), track.get("files", {}))
            found.vips.setdefault(instance["name"], []).append(len(found.instances))
            first = instance["addresses"][0].partition("/")[0]
            found.addresses.setdefault(instance["name"], labels.get(instance["name"], first))
            found.instances.append(
                simulated(member, instance, trackers, planned.get("links", {}))._replace(
                    keeps_addresses_on_stop=planned.get("engine") == engines.AGENT,
                    resigns_after=RESIGNS_AFTER if resigns else None,
                )
            )
            found.trackers.append(trackers)
    delays = [max(t.hang_detection, t.up_detection) for some in found.trackers for t in some]
    delays += [instance.resigns_after or 0 for instance in found.instances]
    settled = max(delays, default=0) + simulator.settling_time(found.instances)
    return found._replace(settling_time=max(settled, _last_offer(found)))


def _last_offer(found: Cluster) -> int:
    """Return how long after a balancer has hung somebody has taken the last offer over, if nobody took one before."""
    interval = max((instance.router.interval for instance in found.instances), default=0)
    detections = [tracker.hang_detection for some in found.trackers for tracker in some if tracker.offers]
    return max(detections, default=0) + max(offers.moments(interval)) + interval if detections else 0


def _trackers(instance: Dict[str, Any], scripts: Named, files: Named) -> List[Tracker]:
    found = []
    for item in instance["track_scripts"]:
        weight = item["weight"]
        passes, fails = tracking.check(weight, True), tracking.check(weight, False)
        found.append(_polling(item, passes, fails, scripts.get(item["name"], {})))
    for item in instance["track_files"]:  # the kernel reports a change at once
        weight = item["weight"]
        passes, fails = tracking.file(weight, 0), tracking.file(weight, 1)
        asked = files.get(item["name"], {})
        found.append(_polling(item, passes, fails, asked)._replace(offers=bool(asked and weight)))
    for item in instance["track_interfaces"]:  # as well
        weight = item["weight"]
        found.append(Tracker(item["name"], tracking.check(weight, True), tracking.check(weight, False), 0, 0, 0))
    return found


def _polling(
    item: Dict[str, Any], passes: tracking.PriorityDelta, fails: tracking.PriorityDelta, script: Dict[str, Any]
) -> Tracker:
    period = script.get("interval", 0)
    death, life = (_micro(period * script.get(count, 1)) for count in ("fall", "rise"))
    hang = _micro(hang_detection(period, script.get("timeout", period), script.get("fall", 1)))
    return Tracker(item["name"], passes, fails, death, life, hang, item.get("offers", False))


def hang_detection(interval: float, timeout: float, fall: int) -> float:
    """Return after how many seconds a script has failed often enough, if each run waits until its timeout.

    The first of these runs begins an interval after the last one that passed. keepalived skips those that are due while
    one is under way, also the one at its very end.
    """
    distance = interval * (timeout // interval + 1) if interval else timeout
    return interval + (fall - 1) * distance + timeout


def simulated(
    member: str, instance: Dict[str, Any], trackers: List[Tracker], links: Mapping[str, int]
) -> simulator.Instance:
    """Return an instance of a plan as the simulator takes it.

    :param links: of the member, by interface
    """
    interval = _micro(instance["advert_interval"])
    router = machine.VirtualRouter(
        version=instance["version"],
        priority=instance["priority"],
        interval=interval,
        source=instance["source"],
        preempt=instance["preempt"],
        # A delay beyond all other timers changes no outcome; it only lengthens the simulation.
        preempt_delay=min(_micro(instance["preempt_delay"]), machine.MISSED * interval),
        tracked=frozenset(tracker.name for tracker in trackers),
    )
    carrying = carriers(instance)
    addresses, is_apart = tuple(carrying), {*carrying.values()} != {instance["interface"]}
    return simulator.Instance(
        member=member,
        name=instance["name"],
        router=router,
        advertisement=packet.Advertisement(
            instance["version"],
            instance["vrid"],
            instance["priority"],
            interval,
            addresses,
            auth_pass=(instance.get("auth_pass") or "").encode(),
        ),
        family=ipaddress.ip_address(addresses[0]).version,
        link=virtual_router(instance, links).link,
        peers=None if instance["multicast"] else frozenset(instance["peers"]),
        tracks_link=is_apart or not instance.get("dont_track_primary"),
        is_apart=is_apart,
    )


def _micro(seconds: float) -> int:
    return round(seconds * SECOND)
