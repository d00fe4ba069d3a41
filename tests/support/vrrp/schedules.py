# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random schedules for the simulator: who takes part in a cluster, and what befalls it until the link is whole again.

Two to four members share one or two Virtual Routers. First comes chaos: Advertisements get lost, late, doubled and
overtaken; members crash, stop, hang and come back; what they track fails and recovers. Then every member has a fate for
good, the link is whole, and nothing happens any more.
"""

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import machine, packet, tracking
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import simulator

MILLISECOND = 1000
DRIFT = 500  # microseconds that a clock gains or loses in each second, at most
LONGEST = 12  # intervals of chaos
VERBS = ("weather", "weather", "split", "deafen", "crash", "stop", "start", "pause", "read", "read", "read")


class Member(NamedTuple):
    """What the seats of a member have in common."""

    name: str
    number: int  # in its addresses
    priority: int
    preempt: bool
    preempt_delay: int


class Thing(NamedTuple):
    """Something tracked, and all that it may be read as, first that it is well."""

    name: str
    readings: Tuple[tracking.PriorityDelta, ...]


class Weather(NamedTuple):
    """What the link does to each Advertisement."""

    lost: float
    doubled: float
    delay: int  # at most


class Action(NamedTuple):
    """Something that happens to a member, or to the link."""

    at: int
    verb: str
    member: str = ""
    what: Any = None


class Schedule(NamedTuple):
    """All that a seed decides, but for the fate of each single Advertisement."""

    seats: List[simulator.Seat]
    things: List[List[Thing]]  # of each seat
    groups: List[Tuple[int, ...]]
    drift: Dict[str, int]
    transit: Tuple[int, int]  # on the link that is whole, at least and at most
    actions: List[Action]
    end: int  # of the chaos


def make(rng: random.Random) -> Schedule:
    """Draw a schedule."""
    base = rng.choice((10, 20, 50, 100, 200, 500, 1000, 1000)) * MILLISECOND
    members = list(_members(rng, base))
    names = ["blue", "red"][: 1 + (rng.random() < 0.4)]
    grouped = len(names) == 2 and rng.random() < 0.5
    equal = rng.random() < 0.8
    seats, things = [], []  # type: Tuple[List[simulator.Seat], List[List[Thing]]]
    for vrid, name in enumerate(names, 1):
        for seat in _virtual_router(rng, name, vrid, members, base, grouped, equal):
            things.append(list(_things(rng, grouped)))
            tracked = frozenset(thing.name for thing in things[-1])
            seats.append(seat._replace(router=seat.router._replace(tracked=tracked)))
    slowest = max(seat.router.interval for seat in seats)
    end = rng.randint(3, LONGEST) * slowest
    latest = slowest // 200
    actions = [*_chaos(rng, members, things, slowest, end), *_fates(rng, members, things, end)]
    return Schedule(
        seats,
        things,
        [(at, at + len(members)) for at in range(len(members))] if grouped else [],
        {member.name: rng.randint(-DRIFT, DRIFT) for member in members if rng.random() < 0.5},
        # An interval is learned from the Advertisement that came last. If a loser's could be overtaken by the answer
        # to it, the others would learn the wrong one and miss the Active router too early. RFC 9568 section 6.1 has
        # nothing against that; a plan has equal intervals.
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
) -> Iterator[simulator.Seat]:
    version = rng.choice((2, 3)) if base == machine.SECOND else 3
    family = rng.choice((4, 6)) if version == 3 else 4
    unicast = rng.random() < 0.4
    interval = base * rng.choice((1, 1, 2)) if version == 3 else base
    pattern = "192.0.2.{:d}" if family == 4 else "fe80::{:x}"
    for member in members:
        own = interval if equal or version == 2 else interval * rng.choice((1, 2))
        # A group has one order of its members. With another order in each of its Virtual Routers no member could
        # keep all of them, whatever VRRP does.
        preempt = member.preempt if grouped or rng.random() < 0.7 else not member.preempt
        source = pattern.format(member.number)
        router = machine.VirtualRouter(version, member.priority, own, source, preempt, member.preempt_delay)
        others = frozenset(pattern.format(other.number) for other in members if other is not member)
        sent = packet.Advertisement(version, vrid, member.priority, own, ("192.0.2.200",))
        yield simulator.Seat(member.name, name, router, sent, family, others if unicast else None)


def _things(rng: random.Random, grouped: bool) -> Iterator[Thing]:
    for number in range(rng.choice((0, 1, 1, 2))):
        # In a group a weight of one Virtual Router could give it another order: see above. keepalived does not let
        # weights act in a sync group either, unless it is told to.
        weight = 0 if grouped else rng.choice((0, 0, 2, -2, 50, -50, rng.randint(-254, 254)))
        if rng.random() < 0.5:
            yield Thing(f"thing {number + 1}", (tracking.check(weight, True), tracking.check(weight, False)))
        else:
            yield Thing(f"thing {number + 1}", tuple(tracking.file(weight, value) for value in (0, 1, 5)))


def _chaos(
    rng: random.Random, members: List[Member], things: List[List[Thing]], slowest: int, end: int
) -> Iterator[Action]:
    names = [member.name for member in members]
    yield from (Action(rng.randrange(slowest), "start", name) for name in names)
    for _action in range(rng.randint(2, 12)):
        at, verb, name = rng.randrange(end), rng.choice(VERBS), rng.choice(names)
        what: Any = None
        if verb == "weather":
            what = Weather(rng.choice((0, 0.1, 0.5)), rng.choice((0, 0.2)), rng.choice((1, slowest // 4, 2 * slowest)))
        elif verb == "split":
            side = {other for other in names if rng.random() < 0.5}
            what = frozenset((one, two) for one in names for two in names if (one in side) != (two in side))
        elif verb == "deafen":
            what = frozenset((other, name) for other in names)
        elif verb == "stop":
            what = rng.random() < 0.5  # whether the process ends
        elif verb == "pause":
            what = min(at + rng.randrange(5 * slowest), end - 1)
        elif verb == "read":
            seat = rng.choice(range(names.index(name), len(things), len(names)))
            what = (seat, *_reading(rng, rng.choice(things[seat]))) if things[seat] else None
        yield Action(at, verb, "" if verb in ("weather", "split", "deafen") else name, what)


def _fates(rng: random.Random, members: List[Member], things: List[List[Thing]], end: int) -> Iterator[Action]:
    """What becomes of every member at the end of the chaos, for good."""
    yield Action(end, "heal")
    for seat, some in enumerate(things):
        name = members[seat % len(members)].name
        for thing in some:
            reading = _reading(rng, thing) if rng.random() < 0.3 else (thing.name, thing.readings[0])
            yield Action(end, "read", name, (seat, *reading))
    for member in members:
        yield Action(end, rng.choice(("crash", "stop") if rng.random() < 0.15 else ("start",)), member.name)


def _reading(rng: random.Random, thing: Thing) -> Tuple[str, tracking.PriorityDelta]:
    return thing.name, rng.choice(thing.readings)
