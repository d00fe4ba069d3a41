# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of a run the VIP of a changing pair is gone for no longer than said."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import rounds
from support.netns.changes import CHANGES, VIP, Change, run
from support.netns.links import skip_reason
from support.netns.recorder import use_realtime_priority
from support.netns.stalls import StallDetector

INTERVAL = 1
HANDOVER_MS = 60  # two members may have the VIP for so long when it moves


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """What was seen in each round of each change. Few run at once: the bound is for hosts that are not busy."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    aborted = threading.Event()
    threads = ThreadPoolExecutor(len(CHANGES), initializer=use_realtime_priority)
    with contextlib.closing(StallDetector()) as detector, threads as pool:

        def play(changes):
            folder = tmp_path_factory.mktemp("play")
            return run(changes, True, INTERVAL, folder, aborted, stalled=detector.stalled)

        try:
            runs = {
                name: [pool.submit(play, each) for _round in range(rounds.ROUNDS)] for name, each in CHANGES.items()
            }
            return {name: [playing.result() for playing in some] for name, some in runs.items()}
        finally:
            aborted.set()


@pytest.mark.parametrize("name", CHANGES)
def test_the_vip_is_gone_for_no_longer_than_said(played, name):
    said = Change(CHANGES[name], INTERVAL).way.gone[VIP] / 1000
    assert rounds.percentile([seen.outage_ms for seen in played[name]]) <= said + HANDOVER_MS


@pytest.mark.parametrize("name", CHANGES)
def test_two_members_have_the_vip_for_no_longer_than_a_handover_takes(played, name):
    assert rounds.percentile([seen.overlap_ms for seen in played[name]]) <= HANDOVER_MS
