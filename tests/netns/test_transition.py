# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that split a pair are forecast, and a run avoids it: real keepalived takes the steps of the run.

Each change is done twice. Without care lb1 alone is reloaded, and both members hold the VIP. In the order of the run
the VIP has one holder throughout, and is gone for no longer than said. The runs wait most of the time, so several run
at once, each on its own link.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import transition
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair, planner
from support.netns.keepaliveds import Cluster
from support.netns.links import skip_reason
from support.netns.recorder import use_realtime_priority
from support.plans.pairs import member
from support.plans.transitions import VIP, living, to_play

pytestmark = pytest.mark.timed
SHARED = "192.0.2.77"
CHANGES = {
    "VRID": {"vrid": 77},
    "VRRP version": {"vrrp_version": 3},
    "interval in version 2": {"advert_interval": 2},
    "password": {"auth_pass": "an0ther1"},
    "multicast": {"multicast": True},
    "VIPs of one VRID": {"shared": [SHARED]},  # before keepalived 2.3.3
}
BETWEEN = 0.7  # seconds from one step of a run to the next
SPLIT = 9  # seconds after which a split has shown: Active_Down_Interval at 2 s, and some more
HANDOVER_MS = 60  # two members may have the VIP for so long when it moves


class Seen(NamedTuple):
    """One change of one pair: both members held the VIP for so long, and nobody did."""

    overlap_ms: float
    outage_ms: float
    holders: list


class Change:
    """A pair that runs, and the plan that changes it."""

    def __init__(self, changes):
        self.members = living(**changes)
        self.auth_pass = self.members[0]["settings"]["auth_pass"]
        self.before = planner.draft(pair.LAYOUT, [member(1), member(2)])
        self.after = pair.plan(self.members)
        for planned in self.before.members.values():
            planned.router.instances[0]["addresses"] += [f"{vip}/32" for vip in changes.get("shared", [])]

    def configure(self, cluster, name):
        cluster.configure(name, self.after.members[name].router, self.auth_pass)

    def take(self, cluster, step):
        """Do what a run does."""
        if step.verb == transition.STOP:
            return cluster.stop(step.member)
        self.configure(cluster, step.member)
        return cluster.reload(step.member) if step.verb == transition.RELOAD else cluster.start(step.member)


def play(changes, with_care, folder, aborted):
    change = Change(changes)
    with Cluster(change.before, folder, aborted) as cluster:
        assert cluster.settle({VIP: "lb1"}, 30), cluster.logs()
        begin = time.time()
        waves = to_play(change.members).waves if with_care else [[transition.Step(transition.RELOAD, "lb1", 1)]]
        for step in (step for wave in waves for step in wave):
            change.take(cluster, step)
            aborted.wait(BETWEEN)
        aborted.wait(SPLIT)
        end = time.time()
        recorder = cluster.recorder
        return Seen(recorder.overlap(VIP, begin, end), recorder.outage(VIP, begin, end), cluster.view(VIP).holders)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """What was seen of each change, in the order of a run and without care. An exception in one run fails all tests."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    aborted = threading.Event()
    with ThreadPoolExecutor(len(CHANGES), initializer=use_realtime_priority) as pool:
        try:
            runs = {
                (name, with_care): pool.submit(play, changes, with_care, tmp_path_factory.mktemp("play"), aborted)
                for name, changes in CHANGES.items()
                for with_care in (True, False)
            }
            return {key: run.result() for key, run in runs.items()}
        finally:
            aborted.set()


@pytest.mark.parametrize("name", CHANGES)
def test_the_change_is_forecast_to_split_and_does_so_without_care(played, name):
    lines = Change(CHANGES[name]).after.warnings
    assert any("splits while members differ" in line for line in lines)
    seen = played[name, False]
    assert seen.holders == ["lb1", "lb2"] and seen.overlap_ms > 1000


@pytest.mark.parametrize("name", CHANGES)
def test_in_the_order_of_a_run_the_vip_has_one_holder_throughout(played, name):
    seen = played[name, True]
    assert seen.holders == ["lb1"] and seen.overlap_ms <= HANDOVER_MS
    said = to_play(Change(CHANGES[name]).members).gone[VIP] / 1000
    assert seen.outage_ms <= said + HANDOVER_MS
