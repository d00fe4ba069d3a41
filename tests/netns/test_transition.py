# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that split a pair are forecast, and a run avoids it: real keepalived takes the steps of the run.

Each change is done twice. Without care lb1 alone is reloaded, and both members hold the VIP. In the order of the run
the VIP has one holder throughout. For how long it is gone is judged in tests/timing. The runs wait most of the time, so
several run at once, each on its own link.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.netns.changes import CHANGES, VIP, Change, run
from support.netns.links import skip_reason

INTERVAL = 3  # seconds. A router may stand still for two of them, and no other one takes over.
AT_ONCE = 2 * len(CHANGES)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """What was seen of each change, in the order of a run and without care. An exception in one run fails all tests."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    aborted, folder = threading.Event(), tmp_path_factory.mktemp

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            runs = {
                (name, with_care): pool.submit(run, changes, with_care, INTERVAL, folder("play"), aborted)
                for name, changes in CHANGES.items()
                for with_care in (True, False)
            }
            return {key: playing.result() for key, playing in runs.items()}
        finally:
            aborted.set()


@pytest.mark.parametrize("name", CHANGES)
def test_the_change_is_forecast_to_split_and_does_so_without_care(played, name):
    lines = Change(CHANGES[name], INTERVAL).after.warnings
    assert any("splits while members differ" in line for line in lines)
    assert played[name, False].holders == ["lb1", "lb2"]


@pytest.mark.parametrize("name", CHANGES)
def test_in_the_order_of_a_run_the_vip_has_one_holder_throughout(played, name):
    gone = {()} if Change(CHANGES[name], INTERVAL).way.gone[VIP] else set()
    assert played[name, True].held <= {("lb1",)} | gone
