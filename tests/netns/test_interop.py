# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent interoperates with other VRRP routers: after each failure of either one, the right router is Active.

Each pair of routers has its own link and three Virtual Routers, and goes through the same SCRIPT. Several pairs run at
the same time, because they mostly wait. The tests then read the records: the holders, and the times, which must be
within the limits of the protocol. No run is repeated.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.forecast import SWITCH_MS
from support.netns.agents import TRACKED, Agent, Keepalived
from support.netns.captures import GOOD, dissect
from support.netns.frrs import Vrrpd
from support.netns.links import Link, sh, skip_reason
from support.netns.recorder import Recorder, View, message_in, use_realtime_priority
from support.scope import FULL
from support.waiting import LIMIT_S

pytestmark = pytest.mark.timed
# Each pair has its own process, so that no recorder waits for another one.
FORK = multiprocessing.get_context("fork")
ABORTED = FORK.Event()
AT_ONCE = 8
STEADY = 0.4  # seconds: longer than the second round of announcements, or a late announcement of the loser, takes
FIRST, SECOND = "lb1", "lb2"
EITHER, NEITHER = "either", "neither"


class Variant(NamedTuple):
    """The protocol between two routers."""

    version: int
    family: int
    multicast: bool
    auth_pass: str = ""

    @property
    def interval(self):
        """The shortest one of version 2; in version 3 one that a busy machine can keep."""
        return 1 if self.version == 2 else 0.25

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

    def __str__(self):
        first, second = (kind.kind for kind in self.kinds)
        return f"{self.variant}, {first} before {second}"

    @property
    def silence(self):
        """The seconds after which no router changes its state any more. No Backup has a priority below 150."""
        return 3 * self.variant.interval + (256 - 150) / 256 * self.variant.interval + 0.2

    @property
    def overlap_ms(self):
        """The limit of the forecast: the winner's next Advertisement, and the removal of the loser's addresses."""
        lost = max(kind.lost.get(self.variant.family, 0) for kind in self.kinds)
        return (1 + lost) * self.variant.interval * 1000 + SWITCH_MS

    @property
    def missed_ms(self):
        return 3 * self.variant.interval * 1000


def cases():
    for variant in VARIANTS:
        yield Case(variant, (Agent, Agent))
        # FRR's vrrpd has no unicast.
        for peer in (Keepalived, Vrrpd) if variant.version == 3 and variant.multicast else (Keepalived,):
            yield Case(variant, (Agent, peer))
            yield Case(variant, (peer, Agent))


def quick_cases():
    """Yield each variant with keepalived once. The first member alternates, within multicast and unicast, too."""
    for number, variant in enumerate(VARIANTS):
        yield Case(variant, (Keepalived, Agent) if (number + number // 2) % 2 else (Agent, Keepalived))


CASES = {str(case): case for case in (cases() if FULL else quick_cases())}


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
        "advert_interval": variant.interval,
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
    overlap_ms: float  # for how long it had two holders
    handover_ms: float  # from the holder's stop to the other one's first Advertisement; infinite without a handover


class Play:
    """One run of one case."""

    def __init__(self, case, folder):
        self.case, self.folder = case, folder
        self.link = Link()
        self.daemons: Dict[str, Any] = {}
        self.recorder = None
        self.before: Dict[str, View] = {}
        self.steps: List[Dict[str, Outcome]] = []

    def __enter__(self):
        try:
            self.link.start()
            for kind, node in zip(self.case.kinds, self.link.members):
                instances = [instance(self.case, rule, node.number) for rule in RULES.values()]
                self.daemons[node.name] = kind(node, self.folder / node.name, instances)
            macvlans = {name: getattr(daemon, "macvlans", []) for name, daemon in self.daemons.items()}
            self.recorder = Recorder(self.link, ABORTED, macvlans)
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

    def run(self):
        for step in SCRIPT:
            self.before = {rule: self._view(rule) for rule in RULES}
            begin = time.time()
            for name in step.members:
                self._apply(name, step.event)
            self._settle(step)
            end = time.time()
            self.steps.append({rule: self._outcome(step, rule, begin, end) for rule in RULES})

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

    def _settle(self, step):
        """Wait until the holders are as expected and cannot change any more, or until the limit."""
        begin = time.monotonic()
        while self.recorder.wait(lambda: self._right(step), begin + LIMIT_S - time.monotonic()):
            left = max(STEADY, begin + self.case.silence - time.monotonic())
            if not self.recorder.wait(lambda: not self._right(step), left):
                return

    def _right(self, step):
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
        handover = self._handover(RULES[rule].vrid, step.members[0], begin) if stopped else math.inf
        return Outcome(self._wrong(step, rule), overlap, handover)

    def _handover(self, vrid, leaver, begin):
        """Return how many milliseconds a handover took; infinite without a resignation or without a takeover."""
        sent = [(one.at, one.member, message_in(one.packet)) for one in self.recorder.advertisements if one.at >= begin]
        ours = [(at, member, message[2]) for at, member, message in sent if message[1] == vrid]
        resigned = any(member == leaver and priority == 0 for _at, member, priority in ours)
        others = [at for at, member, _priority in ours if member != leaver]
        return round((others[0] - begin) * 1000, 1) if resigned and others else math.inf


class Played(NamedTuple):
    steps: List[Dict[str, Outcome]]
    packets: List[bytes]  # all advertisements


def play(case, folder):
    with Play(case, folder) as playing:
        playing.run()
        return Played(playing.steps, [sent.packet for sent in playing.recorder.advertisements])


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    if skip_reason("keepalived", "vtysh"):
        pytest.skip(skip_reason("keepalived", "vtysh"))
    with ProcessPoolExecutor(AT_ONCE, FORK, use_realtime_priority) as pool:
        try:
            folder = tmp_path_factory.mktemp
            yield {name: pool.submit(play, case, folder("play")) for name, case in CASES.items()}
        finally:
            ABORTED.set()


@pytest.fixture(scope="module")
def dissections(played, tmp_path_factory):
    """Every Advertisement, dissected by tshark, by case."""
    packets = {name: future.result().packets for name, future in played.items()}
    fields = iter(dissect([each for some in packets.values() for each in some], tmp_path_factory.mktemp("capture")))
    return {name: list(itertools.islice(fields, len(some))) for name, some in packets.items()}


STEPS = [pytest.param(name, at, id=f"{name}: {step}") for name in CASES for at, step in enumerate(SCRIPT)]


# The steps in which one member stops that holds all addresses.
HANDOVERS = [
    at
    for at, (before, step) in enumerate(zip(SCRIPT, SCRIPT[1:]), 1)
    if step.event == "stops" and before.holders == len(RULES) * step.members
]


@pytest.mark.parametrize("name, at", STEPS)
def test_each_vip_has_the_right_holder_only(played, name, at):
    steps = played[name].result().steps
    assert {rule: outcome.wrong for rule, outcome in steps[at].items() if outcome.wrong} == {}


@pytest.mark.parametrize("name, at", STEPS)
def test_two_holders_exist_only_until_one_receives_an_advertisement_of_the_other(played, name, at):
    overlaps = {rule: outcome.overlap_ms for rule, outcome in played[name].result().steps[at].items()}
    assert max(overlaps.values()) <= CASES[name].overlap_ms, overlaps


@pytest.mark.parametrize("at", HANDOVERS, ids=[str(SCRIPT[at]) for at in HANDOVERS])
@pytest.mark.parametrize("name", CASES)
def test_a_router_that_stops_resigns_and_the_other_takes_over_before_three_intervals(played, name, at):
    handovers = {rule: outcome.handover_ms for rule, outcome in played[name].result().steps[at].items()}
    assert max(handovers.values()) < CASES[name].missed_ms, handovers


@pytest.mark.parametrize("name", CASES)
def test_tshark_finds_every_advertisement_well_formed_with_a_good_checksum(dissections, name):
    keys = ("vrrp.checksum.status", "_ws.malformed", "_ws.expert.message")
    assert {tuple(fields[key] for key in keys) for fields in dissections[name]} == {(GOOD, "", "")}
