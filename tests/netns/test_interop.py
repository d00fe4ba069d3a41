# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent interoperates with other VRRP routers: after each failure of either one, the right router is Active.

Each pair goes through the SCRIPT of `support.netns.interop`. The tests read the records. How long each step takes is
judged in tests/timing.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ProcessPoolExecutor

import pytest
from support.netns.captures import GOOD, dissect
from support.netns.interop import ABORTED, FIRST, FORK, SCRIPT, SECOND, Play, cases, keepalived_cases
from support.netns.links import skip_reason
from support.netns.resignations import LONG
from support.scope import FULL

AT_ONCE = 16
# Seconds. A router may stand still for two of them, and no other one takes over.
INTERVAL = 3
CASES = {str(case): case for case in (cases(INTERVAL) if FULL else keepalived_cases(INTERVAL))}


def play(case, folder):
    """Return the outcomes of each step, and all Advertisements."""
    with Play(case, folder) as playing:
        return list(playing.run()), [sent.packet for sent in playing.recorder.advertisements]


def hand_over(case, folder):
    with Play(case._replace(interval=LONG), folder) as playing:
        return playing.hand_over()


@pytest.fixture(scope="module")
def pool():
    if skip_reason("keepalived", "vtysh"):
        pytest.skip(skip_reason("keepalived", "vtysh"))
    with ProcessPoolExecutor(AT_ONCE, FORK) as pool:
        try:
            yield pool
        finally:
            ABORTED.set()


@pytest.fixture(scope="module")
def played(pool, tmp_path_factory):
    return {name: pool.submit(play, case, tmp_path_factory.mktemp("play")) for name, case in CASES.items()}


@pytest.fixture(scope="module")
def handed_over(played, pool, tmp_path_factory):
    return {name: pool.submit(hand_over, case, tmp_path_factory.mktemp("play")) for name, case in CASES.items()}


@pytest.fixture(scope="module")
def dissections(played, tmp_path_factory):
    """Every Advertisement, dissected by tshark, by case."""
    packets = {name: future.result()[1] for name, future in played.items()}
    fields = iter(dissect([each for some in packets.values() for each in some], tmp_path_factory.mktemp("capture")))
    return {name: list(itertools.islice(fields, len(some))) for name, some in packets.items()}


STEPS = [pytest.param(name, at, id=f"{name}: {step}") for name in CASES for at, step in enumerate(SCRIPT)]


@pytest.mark.parametrize("name", CASES)
def test_a_router_that_stops_resigns_and_the_other_takes_over_without_active_down_interval(handed_over, name):
    """Active_Down_Interval is longer than the play waits for the takeover."""
    for rule, sent in handed_over[name].result().items():
        assert (rule, *sent[0][1:]) == (rule, FIRST, 0)
        assert {one.member for one in sent if one.priority > 0} <= {SECOND}, rule


@pytest.mark.parametrize("name, at", STEPS)
def test_each_vip_has_the_right_holder_only(played, name, at):
    steps, _packets = played[name].result()
    assert {rule: outcome.wrong for rule, outcome in steps[at].items() if outcome.wrong} == {}


@pytest.mark.parametrize("name, at", STEPS)
def test_two_holders_exist_only_until_one_receives_an_advertisement_of_the_other(played, name, at):
    """The loser may send two more: one crosses the holder's, or comes from a router that stood still and has its timer
    first; and with the last one it yields, so that the holder announces the VIP again."""
    steps, _packets = played[name].result()
    assert {rule: outcome.insisted for rule, outcome in steps[at].items() if outcome.insisted > 2} == {}


@pytest.mark.parametrize("name", CASES)
def test_tshark_finds_every_advertisement_well_formed_with_a_good_checksum(dissections, name):
    keys = ("vrrp.checksum.status", "_ws.malformed", "_ws.expert.message")
    assert {tuple(fields[key] for key in keys) for fields in dissections[name]} == {(GOOD, "", "")}
