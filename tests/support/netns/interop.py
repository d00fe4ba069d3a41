# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays of two VRRP routers, of which at least one is the agent.

Each pair of routers has its own link and three Virtual Routers, and goes through a script. Several pairs run at the
same time, each in its own process, because they mostly wait.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import time
from typing import Any, Dict, NamedTuple, Tuple

from support.netns.agents import TRACKED, Agent, Keepalived
from support.netns.frrs import Vrrpd
from support.netns.links import Link, sh
from support.netns.recorder import Recorder, View, message_in
from support.netns.resignations import LONG, resign
from support.rendering import keepalived as render
from support.waiting import LIMIT_S, until

# Each pair has its own process, so that no recorder waits for another one.
FORK = multiprocessing.get_context("fork")
ABORTED = FORK.Event()
STEADY = 0.4  # seconds: longer than the second round of announcements, or a late announcement of the loser, takes
FIRST, SECOND = "lb1", "lb2"
EITHER, NEITHER = "either", "neither"


class Variant(NamedTuple):
    """The protocol between two routers."""

    version: int
    family: int
    multicast: bool
    auth_pass: str = ""

    def __str__(self):
        password = {2: " PASS" if self.auth_pass else " none", 3: f" IPv{self.family}"}[self.version]
        return f"v{self.version}{password} {'multicast' if self.multicast else 'unicast'}"


PROTOCOLS = [(2, 4, "0f3a9c1e"), (2, 4, ""), (3, 4, ""), (3, 6, "")]
VARIANTS = [
    Variant(version, family, multicast, password)
    for (version, family, password), multicast in itertools.product(PROTOCOLS, (True, False))
]


class Rule(NamedTuple):
    """A Virtual Router. A failed check lowers the first member's priority below the second one's."""

    vrid: int
    priorities: Tuple[int, int]
    preempt: bool = True
    weight: int = -200


RULES = {
    "preemption": Rule(51, (250, 150)),
    "no preemption": Rule(52, (250, 150), preempt=False),
    # The second member has the greater address.
    "equal priorities": Rule(53, (200, 200)),
}


class Step(NamedTuple):
    members: Tuple[str, ...]
    event: str
    holders: Tuple[str, str, str]  # afterwards, in the order of the RULES

    def __str__(self):
        return f"{' and '.join(self.members)} {self.event}"


BOTH = (SECOND, FIRST)
SCRIPT = [
    Step(BOTH, "starts", (FIRST, EITHER, EITHER)),
    Step((SECOND,), "stops", (FIRST, FIRST, FIRST)),
    Step((SECOND,), "starts", (FIRST, FIRST, FIRST)),
    Step((FIRST,), "stops", (SECOND, SECOND, SECOND)),
    Step((FIRST,), "starts", (FIRST, SECOND, SECOND)),
    Step((FIRST,), "is killed", (SECOND, SECOND, SECOND)),
    Step((FIRST,), "restarts", (FIRST, SECOND, SECOND)),
    Step((SECOND,), "is killed", (FIRST, FIRST, FIRST)),
    Step((SECOND,), "restarts", (FIRST, FIRST, FIRST)),
    Step((FIRST,), "has a failed check", (SECOND, FIRST, SECOND)),
    Step((FIRST,), "has a good check", (FIRST, FIRST, SECOND)),
    # While one is suspended or cut off, both are Active. When they meet, priority decides, then the greater address.
    Step((FIRST,), "is suspended", (SECOND, SECOND, SECOND)),
    Step((FIRST,), "resumes", (FIRST, FIRST, SECOND)),
    Step((SECOND,), "is cut off", (FIRST, FIRST, FIRST)),
    Step((SECOND,), "is back", (FIRST, FIRST, SECOND)),
    Step(BOTH, "stops", (NEITHER, NEITHER, NEITHER)),
]
# By event: the method of the daemon. The other events are those of its port.
METHODS = {
    "starts": "start",
    "stops": "stop",
    "is killed": "kill",
    "restarts": "start",
    "has a failed check": "fail_tracking",
    "has a good check": "recover_tracking",
    "is suspended": "suspend",
    "resumes": "resume",
}
PORT = {"is cut off": ("nomaster",), "is back": ("master", "br0")}
# From the first event to the second one, clients cannot reach the member, so its addresses do not count.
LEAVES, RETURNS = ("is killed", "is cut off", "is suspended"), ("restarts", "is back", "resumes")
MEET = ("resumes", "is back")


class Case(NamedTuple):
    variant: Variant
    kinds: Tuple[Any, Any]  # the classes of the first and the second member
    interval: float  # seconds between Advertisements

    def __str__(self):
        first, second = (kind.kind for kind in self.kinds)
        return f"{self.variant}, {first} before {second}"

    @property
    def silence(self):
        """The seconds after which every Backup that hears nothing has taken over. None has a priority below 150."""
        return 3 * self.interval + (256 - 150) / 256 * max(self.interval, 1) + 0.2


def cases(interval):
    """Yield each variant with each other router, in both orders."""
    for variant in VARIANTS:
        # FRR's vrrpd has no unicast.
        others = (Keepalived, Vrrpd) if variant.version == 3 and variant.multicast else (Keepalived,)
        yield Case(variant, (Agent, Agent), interval)
        for other in others:
            yield Case(variant, (Agent, other), interval)
            yield Case(variant, (other, Agent), interval)


def keepalived_cases(interval):
    """Yield each variant with keepalived once. The first member alternates, within multicast and unicast, too."""
    for number, variant in enumerate(VARIANTS):
        kinds = (Keepalived, Agent) if (number + number // 2) % 2 else (Agent, Keepalived)
        yield Case(variant, kinds, interval)


def vip_of(variant, rule):
    return f"2001:db8::1:{rule.vrid}" if variant.family == 6 else f"192.0.2.{rule.vrid + 100}"


def addresses(case, rule):
    """Return the VIP, after a link-local one, as in RFC 9568, section 5.2.9. FRR could not tell that from its own."""
    if case.variant.family == 6 and Vrrpd not in case.kinds:
        return [f"fe80::1:{rule.vrid}/128", f"{vip_of(case.variant, rule)}/128"]
    return [f"{vip_of(case.variant, rule)}/{128 if case.variant.family == 6 else 32}"]


def instance(case, rule, number):
    """Return an instance in the collection's model. Member lbN has 192.0.2.N and 2001:db8::N."""
    variant = case.variant
    own, other = (f"2001:db8::{n}" if variant.family == 6 else f"192.0.2.{n}" for n in (number, 3 - number))
    return {
        "name": f"V{rule.vrid}",
        "interface": "eth0",
        "vrid": rule.vrid,
        "version": variant.version,
        "priority": rule.priorities[number - 1],
        "advert_interval": case.interval,
        "preempt": rule.preempt,
        "auth_pass": variant.auth_pass,
        "multicast": variant.multicast,
        "source": None if variant.multicast else own,
        "peers": [] if variant.multicast else [other],
        "addresses": addresses(case, rule),
        "track": [{"name": TRACKED, "weight": rule.weight}],
        **({"min_ttl": 64} if variant.family == 6 and not variant.multicast and Keepalived in case.kinds else {}),
    }


class Outcome(NamedTuple):
    """One Virtual Router in one step."""

    wrong: str  # what is wrong at the end
    insisted: int  # how often the other router advertised after the holder had
    overlap_ms: float  # for how long it had two holders
    handover_ms: float  # from the holder's stop to the other one's first Advertisement; infinite without a handover


class Sent(NamedTuple):
    """An Advertisement of one Virtual Router."""

    at: float
    member: str
    priority: int


class Play:
    """One run of one case."""

    def __init__(self, case, folder, **recording):
        """:param recording: more parameters of the recorder"""
        self.case, self.folder, self.recording = case, folder, recording
        self.link = Link()
        self.daemons: Dict[str, Any] = {}
        self.recorder = None
        self.before: Dict[str, View] = {}

    def __enter__(self):
        try:
            self.link.start()
            for kind, node in zip(self.case.kinds, self.link.members):
                self.daemons[node.name] = kind(node, self.folder / node.name, self._instances(node))
            macvlans = {name: getattr(daemon, "macvlans", []) for name, daemon in self.daemons.items()}
            self.recorder = Recorder(self.link, ABORTED, macvlans, **self.recording)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception):
        for daemon in self.daemons.values():
            daemon.close()
        if self.recorder:
            self.recorder.close()
        self.link.stop()

    def _instances(self, node):
        return [instance(self.case, rule, node.number) for rule in RULES.values()]

    def run(self):
        """Yield the outcomes of each step of the script."""
        expected = None
        for step in SCRIPT:
            self.before = {rule: self._view(rule) for rule in RULES}
            begin = time.time()
            for name in step.members:
                self._apply(name, step.event)
            # Where no VIP moves, nothing else shows that a Backup that does not hear the holder has had its time.
            self._settle(step, self.case.silence if step.holders == expected else STEADY)
            end, expected = time.time(), step.holders
            yield {rule: self._outcome(step, rule, begin, end) for rule in RULES}

    def hand_over(self):
        """Have the first member take over all VIPs and stop; return what was sent of each from the stop on."""
        self._start_as_backup(FIRST)
        untracked = [{**each, "track": []} for each in self._instances(self.link.lb2)]
        text = render({"instances": [Keepalived.with_track_files(**each) for each in untracked]}, SECOND)
        until(lambda: resign(self.link.lb2, text) or self._all_held_by(FIRST, LONG / 2), self.daemons[FIRST].log)
        self._start_as_backup(SECOND)
        begin = time.time()
        self._apply(FIRST, "stops")
        assert self._all_held_by(SECOND, LIMIT_S), "".join(daemon.log() for daemon in self.daemons.values())
        return {rule: self._sent(rule, begin) for rule in RULES}

    def _start_as_backup(self, name):
        daemon = self.daemons[name]
        daemon.start()
        until(daemon.is_backup, daemon.log)

    def _all_held_by(self, name, limit):
        return self.recorder.wait(lambda: all(self._view(rule).holders == [name] for rule in RULES), limit)

    def _apply(self, name, event):
        daemon = self.daemons[name]
        if event in LEAVES:
            self.recorder.record(name, "cut")
        if event in PORT:
            sh("ip", "-n", self.link.bridge, "link", "set", daemon.node.port, *PORT[event])
        else:
            getattr(daemon, METHODS[event])()
        if event in RETURNS:
            self.recorder.record(name, "joined")

    def _settle(self, step, silence):
        """Wait until the holders are as expected and stay so, or until the limit.

        :param silence: the seconds since now that it takes to see that they stay so
        """
        begin = time.monotonic()
        while self.recorder.wait(lambda: self._right(step), begin + LIMIT_S - time.monotonic()):
            left = max(STEADY, begin + silence - time.monotonic())
            if not self.recorder.wait(lambda: not self._right(step), left):
                return

    def _right(self, step):
        if step.event == "is suspended":  # still: a test run under stress resumes what it has stopped itself
            self.daemons[step.members[0]].suspend()
        return not any(self._wrong(step, rule) for rule in RULES)

    def _wrong(self, step, rule):
        expected = dict(zip(RULES, step.holders))[rule]
        view = self._view(rule)
        if expected == NEITHER:
            return f"still held by {view.holders}" if view.holders else ""
        if len(view.holders) != 1 or expected not in (EITHER, *view.holders):
            return f"held by {view.holders}, not by {expected}"
        holder = view.holders[0]
        if view.announcer != holder and self._must_announce(step, rule, holder):
            return f"held by {holder}, but clients send to {view.announcer}"
        return ""

    def _must_announce(self, step, rule, holder):
        """Return whether the holder must have announced the VIP: always, unless it met another Active and one of the
        two is silent then."""
        met = step.event in MEET or step.members == BOTH or holder in self.before[rule].holders
        return not met or not any(kind.silent for kind in self.case.kinds)

    def _vip(self, rule):
        return vip_of(self.case.variant, RULES[rule])

    def _view(self, rule):
        return self.recorder.views(self._vip(rule))[-1][1]

    def _outcome(self, step, rule, begin, end):
        overlap = self.recorder.overlap(self._vip(rule), begin, end)
        stopped = step.event == "stops" and self.before[rule].holders == list(step.members)
        handover = self._handover(rule, step.members[0], begin) if stopped else math.inf
        return Outcome(self._wrong(step, rule), self._insisted(rule, begin), overlap, handover)

    def _insisted(self, rule, begin):
        """Return how often another router advertised after it had received an Advertisement of the holder."""
        view = self._view(rule)
        met = max([begin, *(event.at for event in self.recorder.events if event.kind == "joined")])
        sent = [one for one in self._sent(rule, met) if one.priority > 0 and one.member not in view.cut]
        holders_own = [at for at, one in enumerate(sent) if [one.member] == view.holders]
        return sum([one.member] != view.holders for one in sent[holders_own[0] :]) if holders_own else 0

    def _sent(self, rule, begin):
        """Return what was sent of a Virtual Router since then."""
        sent = [(one.at, one.member, message_in(one.packet)) for one in self.recorder.advertisements if one.at >= begin]
        return [Sent(at, member, message[2]) for at, member, message in sent if message[1] == RULES[rule].vrid]

    def _handover(self, rule, leaver, begin):
        """Return how many milliseconds a handover took; infinite without a resignation or without a takeover."""
        sent = self._sent(rule, begin)
        resigned = any(one.member == leaver and one.priority == 0 for one in sent)
        others = [one.at for one in sent if one.member != leaver]
        return round((others[0] - begin) * 1000, 1) if resigned and others else math.inf
