# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long two routers hold a VIP, and how long a handover takes, between the agent and other VRRP routers.

A few pairs go through the SCRIPT of `support.netns.interop` several times, at the shortest interval of version 2, and
in version 3 at one that a busy machine can keep.
"""

from __future__ import annotations

import contextlib
import math
from concurrent.futures import ProcessPoolExecutor

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.forecast import SWITCH_MS
from support import rounds
from support.netns.interop import FORK, SCRIPT, Play, cases
from support.netns.links import skip_reason
from support.netns.recorder import use_realtime_priority
from support.netns.stalls import StallDetector

AT_ONCE = 4
NAMES = (
    "v2 PASS unicast, keepalived before agent",
    "v3 IPv4 multicast, agent before keepalived",
    "v3 IPv4 multicast, agent before vrrpd",
    "v3 IPv6 unicast, keepalived before agent",
)
CASES = {
    str(case): case._replace(interval=1 if case.variant.version == 2 else 0.25)
    for case in cases(1)
    if str(case) in NAMES
}


def overlap_limit_ms(case):
    """The limit of the forecast: the winner's next Advertisement, and the removal of the loser's addresses."""
    lost = max(kind.lost.get(case.variant.family, 0) for kind in case.kinds)
    return (1 + lost) * case.interval * 1000 + SWITCH_MS


def play(case, folder):
    with contextlib.closing(StallDetector()) as detector, Play(case, folder, stalled=detector.stalled) as playing:
        return [list(outcomes.values()) for outcomes in playing.run()]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """By case and step: the outcomes of all Virtual Routers in all rounds."""
    if skip_reason("keepalived", "vtysh"):
        pytest.skip(skip_reason("keepalived", "vtysh"))
    with ProcessPoolExecutor(AT_ONCE, FORK, use_realtime_priority) as pool:
        plays = {
            name: [pool.submit(play, case, tmp_path_factory.mktemp("play")) for _round in range(rounds.ROUNDS)]
            for name, case in CASES.items()
        }
        return {name: list(zip(*(playing.result() for playing in some))) for name, some in plays.items()}


@pytest.mark.parametrize("name", CASES)
def test_two_holders_exist_until_the_next_advertisement(played, name):
    limit = overlap_limit_ms(CASES[name])
    for step, outcomes in zip(SCRIPT, played[name]):
        longest = [max(outcome.overlap_ms for outcome in round_) for round_ in outcomes]
        assert rounds.percentile(longest) <= limit, str(step)


@pytest.mark.parametrize("name", CASES)
def test_a_handover_takes_less_than_three_intervals(played, name):
    at = next(at for at, step in enumerate(SCRIPT) if str(step) == "lb1 stops")
    longest = [max(outcome.handover_ms for outcome in round_) for round_ in played[name][at]]
    assert rounds.percentile(longest) < 3 * CASES[name].interval * 1000 < math.inf
