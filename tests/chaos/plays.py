# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in a play, drawn from its seed. Pure: a seed always draws the same play.

A play is one layout and its rounds. In a round members fail and recover, or a setting changes. At least one member is
without a fault at any time.
"""

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._shared import events

ROUNDS = 20  # of a play
HOST_REBOOTED = "host_rebooted"
KEEPALIVED_RELOADED = "keepalived_reloaded"
# These last until they are reverted; the others are over at once, because the unit starts its program again.
LASTING = (
    events.HAPROXY_STOPPED,
    events.HAPROXY_HUNG,
    events.KEEPALIVED_STOPPED,
    events.HOST_CUT,
    HOST_REBOOTED,
)
AT_ONCE = (
    events.HAPROXY_KILLED,
    events.HAPROXY_RELOADED,
    events.KEEPALIVED_KILLED,
    KEEPALIVED_RELOADED,
    events.BOTH_RELOADED,
)
HARMLESS = (events.HAPROXY_RELOADED, KEEPALIVED_RELOADED, events.BOTH_RELOADED)
# The servers of the service, the order of the members, the password.
SERVERS, ORDER, PASSWORD = "servers", "order", "password"
CHANGES = (SERVERS, ORDER, PASSWORD)
CHANGE_RATE = 0.2  # of the rounds
SPREAD = 1.0  # seconds within which the faults of a round begin
LONGEST = 4.0  # seconds that a fault lasts: a balancer that hangs is noticed within three


class Fault(NamedTuple):
    """One member fails, ``at`` seconds after the round has begun."""

    event: str
    member: str
    at: float
    lasts: float = 0

    def __str__(self) -> str:
        return f"{self.event} at {self.member} after {self.at:.2f} s" + (f", for {self.lasts:.2f} s" * bool(self.lasts))


class Round(NamedTuple):
    """Faults, or one change."""

    number: int
    faults: Tuple[Fault, ...] = ()
    change: str = ""

    def __str__(self) -> str:
        return f"round {self.number}: " + (f"new {self.change}" if self.change else "; ".join(map(str, self.faults)))

    @property
    def is_harmless(self) -> bool:
        """Whether nobody may notice it."""
        return self.change == SERVERS or bool(self.faults) and all(fault.event in HARMLESS for fault in self.faults)


class Play(NamedTuple):
    """A layout, and what happens to it."""

    seed: int
    engines: Tuple[str, ...]  # of each member
    settings: Dict[str, Any]  # of the role `pair`
    rounds: Tuple[Round, ...]

    @property
    def members(self) -> Tuple[str, ...]:
        return names(len(self.engines))

    def __str__(self) -> str:
        return f"seed {self.seed}: {', '.join(self.engines)}; {self.settings}"


def names(count: int) -> Tuple[str, ...]:
    return tuple(f"lb{number}" for number in range(1, count + 1))


def draw(seed: int, rounds: int = ROUNDS) -> Play:
    """Return the play of a seed."""
    rng = random.Random(seed)
    engines = tuple(rng.choice(("native", "agent")) for _member in range(rng.choice((2, 2, 3))))
    settings = _settings(rng)
    drawn = tuple(_round(rng, number, names(len(engines)), settings) for number in range(1, rounds + 1))
    return Play(seed, engines, settings, drawn)


def _settings(rng: random.Random) -> Dict[str, Any]:
    version = rng.choice((2, 3, 3))
    return {
        "vips": ["192.0.2.10", "192.0.2.11"][: rng.choice((1, 2))],
        "vrrp_version": version,
        "advert_interval": 1 if version == 2 else rng.choice((0.1, 0.25)),
        "preempt": rng.random() < 0.8,
        "multicast": rng.random() < 0.3,
        "track_interval": 1,
    }


def _round(rng: random.Random, number: int, members: Tuple[str, ...], settings: Dict[str, Any]) -> Round:
    if rng.random() < CHANGE_RATE:
        known = CHANGES if settings["vrrp_version"] == 2 else (SERVERS, ORDER)  # version 3 has no password
        return Round(number, change=rng.choice(known))
    return Round(number, tuple(sorted(_faults(rng, members), key=lambda fault: fault.at)))


def _faults(rng: random.Random, members: Tuple[str, ...]) -> Iterator[Fault]:
    """Yield a fault for each of some members, but not for all of them."""
    for member in rng.sample(members, rng.randint(1, len(members) - 1)):
        event = rng.choice(LASTING + AT_ONCE)
        lasts = rng.uniform(0.1, LONGEST) if event in LASTING else 0
        yield Fault(event, member, rng.uniform(0, SPREAD), lasts)
