# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent beside other VRRP routers, in both roles: the right one holds, whatever happens to either.

Every pair has a link of its own, three Virtual Routers at once, and goes through the same SCRIPT; several pairs do so
at the same time, because nearly all of it is waiting. The tests then read what was recorded: who holds, and times,
which are held against the limits that the protocol sets. No play is repeated.
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
# Each pair has a process of its own, or what reads for one would wait for what reads for another.
FORK = multiprocessing.get_context("fork")
ABORTED = FORK.Event()
AT_ONCE = 8
STEADY = 0.4  # seconds: longer than a second round of announcements or a late one of a loser takes
FIRST, SECOND = "lb1", "lb2"
EITHER, NOBODY = "either", "nobody"


class Way(NamedTuple):
    """How two routers speak with each other."""

    version: int
    family: int
    multicast: bool
    auth_pass: str = ""

    @property
    def interval(self):
        """The shortest of version 2; in version 3 one that others can keep to when all play at once."""
        return 1 if self.version == 2 else 0.25

    def __str__(self):
        password = {2: " PASS" if self.auth_pass else " none", 3: f" IPv{self.family}"}[self.version]
        return f"v{self.version}{password} {'multicast' if self.multicast else 'unicast'}"


ADVERTS = [(2, 4, "0f3a9c1e"), (2, 4, ""), (3, 4, ""), (3, 6, "")]
WAYS = [Way(version, family, cast, word) for (version, family, word), cast in itertools.product(ADVERTS, (True, False))]


class Rule(NamedTuple):
    """A Virtual Router, by what decides who has it. With ``fails`` the first one's priority is below the second's."""

    vrid: int
    priorities: Tuple[int, int]
    preempt: bool = True
    weight: int = -200


RULES = {
    "preemption": Rule(51, (250, 150)),
    "no preemption": Rule(52, (250, 150), preempt=False),
    # The second one has the greater address.
    "equal priorities": Rule(53, (200, 200)),
}


class Step(NamedTuple):
    who: Tuple[str, ...]
    event: str
    holders: Tuple[str, str, str]  # afterwards, by the RULES

    def __str__(self):
        return f"{' and '.join(self.who)} {self.event}"


BOTH = (SECOND, FIRST)
SCRIPT = [
    Step(BOTH, "starts", (FIRST, EITHER, EITHER)),
    Step((SECOND,), "stops", (FIRST, FIRST, FIRST)),
    Step((SECOND,), "starts", (FIRST, FIRST, FIRST)),
    Step((FIRST,), "stops", (SECOND, SECOND, SECOND)),
    Step((FIRST,), "starts", (FIRST, SECOND, SECOND)),
    Step((FIRST,), "dies", (SECOND, SECOND, SECOND)),
    Step((FIRST,), "revives", (FIRST, SECOND, SECOND)),
    Step((SECOND,), "dies", (FIRST, FIRST, FIRST)),
    Step((SECOND,), "revives", (FIRST, FIRST, FIRST)),
    Step((FIRST,), "fails", (SECOND, FIRST, SECOND)),
    Step((FIRST,), "rises", (FIRST, FIRST, SECOND)),
    # Halted or cut off, both are Active, each rightly; when they meet, priority decides, and then the greater address.
    Step((FIRST,), "hangs", (SECOND, SECOND, SECOND)),
    Step((FIRST,), "resumes", (FIRST, FIRST, SECOND)),
    Step((SECOND,), "is cut off", (FIRST, FIRST, FIRST)),
    Step((SECOND,), "is back", (FIRST, FIRST, SECOND)),
    Step(BOTH, "stops", (NOBODY, NOBODY, NOBODY)),
]
# From here on a member's addresses do not count, until it is back: it reaches nobody.
LEAVES, RETURNS = ("dies", "is cut off", "hangs"), ("revives", "is back", "resumes")
MEET = ("resumes", "is back")


class Case(NamedTuple):
    way: Way
    kinds: Tuple[Any, Any]  # the classes of the first and the second

    def __str__(self):
        first, second = (kind.kind for kind in self.kinds)
        return f"{self.way}, {first} before {second}"

    @property
    def silence(self):
        """Seconds: who has not moved after that will not move any more. Nobody takes over with less than 150."""
        return 3 * self.way.interval + (256 - 150) / 256 * self.way.interval + 0.2

    @property
    def overlap_ms(self):
        """What the plan foresees: the winner's next Advertisement, and the time that the loser takes to let go."""
        lost = max(kind.lost.get(self.way.family, 0) for kind in self.kinds)
        return (1 + lost) * self.way.interval * 1000 + SWITCH_MS

    @property
    def missed_ms(self):
        return 3 * self.way.interval * 1000


def cases():
    for way in WAYS:
        yield Case(way, (Agent, Agent))
        # FRR's knows no unicast.
        for peer in (Keepalived, Vrrpd) if way.version == 3 and way.multicast else (Keepalived,):
            yield Case(way, (Agent, peer))
            yield Case(way, (peer, Agent))


def quick_cases():
    """Each way with keepalived once. Who is first alternates, within multicast and within unicast, too."""
    for number, way in enumerate(WAYS):
        yield Case(way, (Keepalived, Agent) if (number + number // 2) % 2 else (Agent, Keepalived))


CASES = {str(case): case for case in (cases() if FULL else quick_cases())}


def vip_of(way, rule):
    return f"2001:db8::1:{rule.vrid}" if way.family == 6 else f"192.0.2.{rule.vrid + 100}"


def addresses(case, rule):
    """RFC 9568 section 5.2.9 wants a link-local one first; FRR could not tell it from its own."""
    if case.way.family == 6 and Vrrpd not in case.kinds:
        return [f"fe80::1:{rule.vrid}/128", f"{vip_of(case.way, rule)}/128"]
    return [f"{vip_of(case.way, rule)}/{128 if case.way.family == 6 else 32}"]


def instance(case, rule, number):
    """In the words of the collection's model; member lbN has 192.0.2.N and 2001:db8::N."""
    way = case.way
    own, other = (f"2001:db8::{n}" if way.family == 6 else f"192.0.2.{n}" for n in (number, 3 - number))
    return {
        "name": f"V{rule.vrid}",
        "interface": "eth0",
        "vrid": rule.vrid,
        "version": way.version,
        "priority": rule.priorities[number - 1],
        "advert_interval": way.interval,
        "preempt": rule.preempt,
        "auth_pass": way.auth_pass,
        "multicast": way.multicast,
        "source": None if way.multicast else own,
        "peers": [] if way.multicast else [other],
        "addresses": addresses(case, rule),
        "track": [{"name": TRACKED, "weight": rule.weight}],
    }


class Outcome(NamedTuple):
    """Of one Virtual Router in one step."""

    wrong: str  # what is not as it should be, in the end
    overlap_ms: float  # for how long it had two holders
    handover_ms: float  # from the holder's stop to the other one's first advertisement; infinite where there is none


class Play:
    """One case, once."""

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
            for name in step.who:
                self._happen(name, step.event)
            self._settle(step)
            end = time.time()
            self.steps.append({rule: self._outcome(step, rule, begin, end) for rule in RULES})

    def _happen(self, name, event):
        daemon = self.daemons[name]
        if event in LEAVES:
            self.recorder.record(name, "cut")
        if event in ("is cut off", "is back"):
            port = ("nomaster",) if event in LEAVES else ("master", "br0")
            sh("ip", "-n", self.link.bridge, "link", "set", daemon.node.port, *port)
        else:
            getattr(daemon, "starts" if event == "revives" else event)()
        if event in RETURNS:
            self.recorder.record(name, "joined")

    def _settle(self, step):
        """Wait until it is as wanted and can move no more, or is long overdue."""
        begin = time.monotonic()
        while self.recorder.wait(lambda: self._right(step), begin + LIMIT_S - time.monotonic()):
            left = max(STEADY, begin + self.case.silence - time.monotonic())
            if not self.recorder.wait(lambda: not self._right(step), left):
                return

    def _right(self, step):
        return not any(self._wrong(step, rule) for rule in RULES)

    def _wrong(self, step, rule):
        wanted = dict(zip(RULES, step.holders))[rule]
        view = self._view(rule)
        if wanted == NOBODY:
            return f"still held by {view.holders}" if view.holders else ""
        if len(view.holders) != 1 or wanted not in (EITHER, *view.holders):
            return f"held by {view.holders}, not by {wanted}"
        holder = view.holders[0]
        if view.announcer != holder and self._tells_clients(step, rule, holder):
            return f"held by {holder}, but clients send to {view.announcer}"
        return ""

    def _tells_clients(self, step, rule, holder):
        """Whether it must have. It always must, unless one of the two meets other Active ones silently."""
        met = step.event in MEET or step.who == BOTH or holder in self.before[rule].holders
        return not met or not any(kind.silent for kind in self.case.kinds)

    def _vip(self, rule):
        return vip_of(self.case.way, RULES[rule])

    def _view(self, rule):
        return self.recorder.views(self._vip(rule))[-1][1]

    def _outcome(self, step, rule, begin, end):
        shared = self.recorder.overlap(self._vip(rule), begin, end)
        stopped = step.event == "stops" and self.before[rule].holders == list(step.who)
        handover = self._handover(RULES[rule].vrid, step.who[0], begin) if stopped else math.inf
        return Outcome(self._wrong(step, rule), shared, handover)

    def _handover(self, vrid, leaver, begin):
        """Milliseconds; infinite when nobody took over, or it was not said that somebody should."""
        said = [(one.at, one.member, message_in(one.packet)) for one in self.recorder.advertisements if one.at >= begin]
        ours = [(at, member, message[2]) for at, member, message in said if message[1] == vrid]
        gave_up = any(member == leaver and priority == 0 for _at, member, priority in ours)
        taken = [at for at, member, _priority in ours if member != leaver]
        return round((taken[0] - begin) * 1000, 1) if gave_up and taken else math.inf


class Played(NamedTuple):
    steps: List[Dict[str, Outcome]]
    packets: List[bytes]  # all advertisements


def play(case, folder):
    with Play(case, folder) as playing:
        playing.run()
        return Played(playing.steps, [said.packet for said in playing.recorder.advertisements])


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
def read(played, tmp_path_factory):
    """What tshark makes of every advertisement, by case."""
    packets = {name: future.result().packets for name, future in played.items()}
    found = iter(dissect([each for some in packets.values() for each in some], tmp_path_factory.mktemp("capture")))
    return {name: list(itertools.islice(found, len(some))) for name, some in packets.items()}


STEPS = [pytest.param(name, at, id=f"{name}: {step}") for name in CASES for at, step in enumerate(SCRIPT)]


# Those in which one member stops that has all addresses.
HANDOVERS = [
    at
    for at, (before, step) in enumerate(zip(SCRIPT, SCRIPT[1:]), 1)
    if step.event == "stops" and before.holders == len(RULES) * step.who
]


@pytest.mark.parametrize("name, at", STEPS)
def test_the_right_one_holds_and_nobody_else(played, name, at):
    steps = played[name].result().steps
    assert {rule: outcome.wrong for rule, outcome in steps[at].items() if outcome.wrong} == {}


@pytest.mark.parametrize("name, at", STEPS)
def test_two_hold_until_one_hears_the_other_and_no_longer(played, name, at):
    shared = {rule: outcome.overlap_ms for rule, outcome in played[name].result().steps[at].items()}
    assert max(shared.values()) <= CASES[name].overlap_ms, shared


@pytest.mark.parametrize("at", HANDOVERS, ids=[str(SCRIPT[at]) for at in HANDOVERS])
@pytest.mark.parametrize("name", CASES)
def test_who_gives_up_says_so_and_the_other_waits_for_no_missed_advertisements(played, name, at):
    handovers = {rule: outcome.handover_ms for rule, outcome in played[name].result().steps[at].items()}
    assert max(handovers.values()) < CASES[name].missed_ms, handovers


@pytest.mark.parametrize("name", CASES)
def test_tshark_finds_every_advertisement_well_formed_and_well_summed(read, name):
    assert read[name]
    found = {(one["vrrp.checksum.status"], one["_ws.malformed"], one["_ws.expert.message"]) for one in read[name]}
    assert found == {(GOOD, "", "")}
