# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A planned handover between two members, each with a router and a proxy, costs no connection attempt.

An attempt that loses a packet waits for a second before it sends another one (RFC 6298, 2). Open connections through
the old holder end, because members do not share connections; that is not tested here.
"""

from __future__ import annotations

import pytest
from support.netns.handovers import Attempts, members

INTERVAL_S = 10  # so long that no Backup takes over from a holder that this machine has stalled
# By version: what is different, and how long the other member may take to be Active: the longest Skew_Time.
VARIANTS = {"version 3": ({}, INTERVAL_S), "version 2": ({"version": 2}, 1)}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("event", ["stop_router", "stop", "reboot"])
def test_no_connection_attempt_fails_or_sends_its_syn_again(stage, variant, event):
    changes, longest_skew_s = VARIANTS[variant]
    with members(stage, advert_interval=INTERVAL_S, **changes) as (leaving, staying):
        attempts = Attempts(stage)
        attempts.wait_for_some(leaving.node)
        getattr(leaving, event)()
        stage.wait_for_holders("lb2")
        attempts.wait_for_some(staying.node)
        outcomes = attempts.end()
        assert attempts.announcers() == ["lb1", "lb2"]
        begin, end = attempts.unserved(longest_skew_s)
        excused = [at for at in attempts.sent_again() if begin <= at <= end]
        assert attempts.sent_again() == excused
        assert sum(outcome != "ok" for outcome in outcomes) <= len(excused)
