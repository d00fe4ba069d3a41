# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon the peer of a killed keepalived holds the VIP, and for how long both do."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support import rounds
from support.netns.keepaliveds import Cluster
from support.netns.links import skip_reason
from support.netns.stalls import StallDetector
from support.plans.pairs import VRRP_KINDS, member

VIP = "192.0.2.10"
WITHIN_S = 0.3
HANDOVER_MS = 60  # two keepaliveds may have the VIP for so long when the first one returns


def one_round(cluster, vip, stalled):
    """Kill lb1 and start it again; return how soon lb2 held the VIP, and for how long both did, then and later."""
    begin = time.time()
    cluster.kill("lb1")
    assert cluster.settle({vip: "lb2"}), cluster.logs()
    taken = next(at for at, view in cluster.recorder.views(vip) if at > begin and view.announcer == "lb2")
    back = time.time()
    cluster.start("lb1")
    assert cluster.settle({vip: "lb1"}), cluster.logs()
    overlaps = cluster.recorder.overlap(vip, begin, back), cluster.recorder.overlap(vip, back, time.time())
    return (taken - begin - stalled(begin, taken), *overlaps)


@pytest.mark.parametrize("kind", VRRP_KINDS)
def test_the_peer_holds_the_vip_at_once_and_the_two_never_do_together(kind, tmp_path):
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    vip = VRRP_KINDS[kind].get("vips", [VIP])[0]
    plan = pair.plan([member(1, **VRRP_KINDS[kind]), member(2, **VRRP_KINDS[kind])])
    with contextlib.ExitStack() as stack:
        detector = stack.enter_context(contextlib.closing(StallDetector()))
        cluster = stack.enter_context(Cluster(plan, tmp_path, threading.Event(), stalled=detector.stalled))
        assert cluster.settle({vip: "lb1"}), cluster.logs()
        played = [one_round(cluster, vip, detector.stalled) for _round in range(rounds.ROUNDS)]
    taken, together, returned = zip(*played)
    assert rounds.percentile(taken) < WITHIN_S
    assert rounds.percentile(together) == 0
    assert rounds.percentile(returned) <= HANDOVER_MS
