# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random schedules for the simulator: the members of a cluster, and the faults that it meets until the link heals.

Two to four members share one or two Virtual Routers. First comes chaos: Advertisements are lost, delayed, duplicated
and reordered; members crash, stop, hang and come back; trackers fail and recover. Then every member gets its final
state, the link heals, and nothing else happens.
"""

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator

MILLISECOND = 1000
MAX_DRIFT = 500  # microseconds that a clock gains or loses in each second
MAX_CHAOS = 12  # intervals
VERBS = (
    "impair",
    "impair",
    "partition",
    "one_way_partition",
    "crash",
    "stop",
    "start",
    "pause",
    "read",
    "read",
    "read",
)


class Member(NamedTuple):
    """What the instances of a member have in common."""

    name: str
    number: int  # in its addresses
    priority: int
    preempt: bool
    preempt_delay: int


class Tracker(NamedTuple):
    """A check or file that an instance tracks, and its possible readings; the first one is the good one."""

    name: str
    readings: Tuple[tracking.PriorityDelta, ...]


class Impairment(NamedTuple):
    """What the link does to each Advertisement: two probabilities, and the maximum of its delay."""

    lost: float
    duplicated: float
    delay: int


class Action(NamedTuple):
    """An event of a member, or of the link."""

    at: int
    verb: str
    member: str = ""
    what: Any = None


class Schedule(NamedTuple):
    """All that a seed decides, except what happens to each single Advertisement."""

    instances: List[simulator.Instance]
    trackers: List[List[Tracker]]  # of each instance
    groups: List[Tuple[int, ...]]
    drift: Dict[str, int]
    transit: Tuple[int, int]  # on the healed link: minimum and maximum
    actions: List[Action]
    end: int  # of the chaos


def make(rng: random.Random) -> Schedule:
    """Return a random schedule."""
    base = rng.choice((10, 20, 50, 100, 200, 500, 1000, 1000)) * MILLISECOND
    members = list(_members(rng, base))
    names = ["blue", "red"][: 1 + (rng.random() < 0.4)]
    grouped = len(names) == 2 and rng.random() < 0.5
    equal = rng.random() < 0.8
    instances, trackers = [], []  # type: Tuple[List[simulator.Instance], List[List[Tracker]]]
    for vrid, name in enumerate(names, 1):
        for instance in _virtual_router(rng, name, vrid, members, base, grouped, equal):
            trackers.append(list(_trackers(rng, grouped)))
            tracked = frozenset(tracker.name for tracker in trackers[-1])
            instances.append(instance._replace(router=instance.router._replace(tracked=tracked)))
    slowest = max(instance.router.interval for instance in instances)
    end = rng.randint(3, MAX_CHAOS) * slowest
    latest = slowest // 200
    actions = [*_chaos(rng, members, trackers, slowest, end), *_final_states(rng, members, trackers, end)]
    return Schedule(
        instances,
        trackers,
        [(at, at + len(members)) for at in range(len(members))] if grouped else [],
        {member.name: rng.randint(-MAX_DRIFT, MAX_DRIFT) for member in members if rng.random() < 0.5},
        # A Backup learns the interval from the last Advertisement. If the answer to a loser's Advertisement could
        # overtake it, the others would learn the loser's interval and miss the Active router too early. RFC 9568
        # section 6.1 allows that; a plan has equal intervals.
        (1, latest) if equal else (latest, latest),
        sorted(actions, key=lambda action: action.at),
        end,
    )


def _members(rng: random.Random, base: int) -> Iterator[Member]:
    count = rng.choice((2, 2, 3, 3, 4))
    styles = (
        [254, 253, 252, 251],
        [rng.randint(1, 254) for _member in range(4)],
        [rng.randint(100, 102) for _member in range(4)],
        [rng.randint(1, 254)] * 4,
    )
    priorities = rng.sample(rng.choice(styles), count)
    if rng.random() < 0.15:
        priorities[rng.randrange(count)] = tracking.OWNER
    preempting = rng.choice(((True,), (True,), (True, False), (False,)))
    delays = (0, base, 3 * base) if rng.random() < 0.2 else (0,)
    for at, number in enumerate(rng.sample(range(1, 255), count)):
        yield Member(f"m{at + 1}", number, priorities[at], rng.choice(preempting), rng.choice(delays))


def _virtual_router(
    rng: random.Random, name: str, vrid: int, members: List[Member], base: int, grouped: bool, equal: bool
) -> Iterator[simulator.Instance]:
    version = rng.choice((2, 3)) if base == machine.SECOND else 3
    family = rng.choice((4, 6)) if version == 3 else 4
    unicast = rng.random() < 0.4
    interval = base * rng.choice((1, 1, 2)) if version == 3 else base
    pattern = "192.0.2.{:d}" if family == 4 else "fe80::{:x}"
    for member in members:
        own = interval if equal or version == 2 else interval * rng.choice((1, 2))
        # The members of a sync group have the same order in each Virtual Router. With different orders no member
        # could keep all of them.
        preempt = member.preempt if grouped or rng.random() < 0.7 else not member.preempt
        source = pattern.format(member.number)
        router = machine.VirtualRouter(version, member.priority, own, source, preempt, member.preempt_delay)
        others = frozenset(pattern.format(other.number) for other in members if other is not member)
        sent = packet.Advertisement(version, vrid, member.priority, own, ("192.0.2.200",))
        yield simulator.Instance(member.name, name, router, sent, family, others if unicast else None)


def _trackers(rng: random.Random, grouped: bool) -> Iterator[Tracker]:
    for number in range(rng.choice((0, 1, 1, 2))):
        # In a sync group a weight could change the order in one Virtual Router: see above. keepalived ignores weights
        # in sync groups, too, unless sync_group_tracking_weight is set.
        weight = 0 if grouped else rng.choice((0, 0, 2, -2, 50, -50, rng.randint(-254, 254)))
        if rng.random() < 0.5:
            yield Tracker(f"tracker {number + 1}", (tracking.check(weight, True), tracking.check(weight, False)))
        else:
            yield Tracker(f"tracker {number + 1}", tuple(tracking.file(weight, value) for value in (0, 1, 5)))


def _chaos(
    rng: random.Random, members: List[Member], trackers: List[List[Tracker]], slowest: int, end: int
) -> Iterator[Action]:
    names = [member.name for member in members]
    yield from (Action(rng.randrange(slowest), "start", name) for name in names)
    for _action in range(rng.randint(2, 12)):
        at, verb, name = rng.randrange(end), rng.choice(VERBS), rng.choice(names)
        what: Any = None
        if verb == "impair":
            what = Impairment(
                rng.choice((0, 0.1, 0.5)), rng.choice((0, 0.2)), rng.choice((1, slowest // 4, 2 * slowest))
            )
        elif verb == "partition":
            side = {other for other in names if rng.random() < 0.5}
            what = frozenset((one, two) for one in names for two in names if (one in side) != (two in side))
        elif verb == "one_way_partition":
            what = frozenset((other, name) for other in names)
        elif verb == "stop":
            what = rng.random() < 0.5  # whether the process ends
        elif verb == "pause":
            what = min(at + rng.randrange(5 * slowest), end - 1)
        elif verb == "read":
            instance = rng.choice(range(names.index(name), len(trackers), len(names)))
            what = (instance, *_reading(rng, rng.choice(trackers[instance]))) if trackers[instance] else None
        yield Action(at, verb, "" if verb in ("impair", "partition", "one_way_partition") else name, what)


def _final_states(
    rng: random.Random, members: List[Member], trackers: List[List[Tracker]], end: int
) -> Iterator[Action]:
    """Yield the actions that give each member its final state at the end of the chaos."""
    yield Action(end, "heal")
    for instance, some in enumerate(trackers):
        name = members[instance % len(members)].name
        for tracker in some:
            reading = _reading(rng, tracker) if rng.random() < 0.3 else (tracker.name, tracker.readings[0])
            yield Action(end, "read", name, (instance, *reading))
    for member in members:
        yield Action(end, rng.choice(("crash", "stop") if rng.random() < 0.15 else ("start",)), member.name)


def _reading(rng: random.Random, tracker: Tracker) -> Tuple[str, tracking.PriorityDelta]:
    return tracker.name, rng.choice(tracker.readings)
