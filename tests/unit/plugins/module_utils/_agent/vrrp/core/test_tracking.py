# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tracked thing does to the priority, as keepalived defines it."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import tracking

FAULT = tracking.FAULT


@pytest.mark.parametrize(
    "weight, up, reading",
    [
        (0, True, 0),
        (0, False, FAULT),
        (20, True, 20),
        (20, False, 0),
        (-20, True, 0),
        (-20, False, -20),
        (1, True, 1),
        (-1, False, -1),
    ],
)
def test_a_positive_weight_counts_while_up_a_negative_one_while_down_and_none_is_a_fault(weight, up, reading):
    assert tracking.check(weight, up) == reading


@pytest.mark.parametrize(
    "weight, value, reading",
    [
        (0, 0, 0),
        (0, 1, FAULT),
        (0, -1, FAULT),
        (1, 0, 0),
        (2, 3, 6),
        (-2, 3, -6),
        (-1, -5, 5),
        (1, -253, -253),
        (1, -254, FAULT),
        (-127, 2, FAULT),
        (100, 3, 254),
        (1, 254, 254),
        (1, 253, 253),
    ],
)
def test_the_number_in_a_file_counts_times_the_weight(weight, value, reading):
    assert tracking.file(weight, value) == reading


@pytest.mark.parametrize(
    "readings, fault",
    [({}, False), ({"a": 0}, False), ({"a": -254, "b": 0}, False), ({"a": 0, "b": FAULT}, True)],
)
def test_one_fault_is_enough(readings, fault):
    assert tracking.in_fault(readings) is fault


@pytest.mark.parametrize(
    "base, changes, priority",
    [
        (100, [], 100),
        (100, [20], 120),
        (100, [20, -50], 70),
        (100, [-99], 1),
        (100, [-100], 1),
        (100, [-254, -254], 1),
        (100, [154], 254),
        (100, [155], 254),
        (254, [50, -50], 254),
        (100, [FAULT, 5], 105),
        (255, [], 255),
        (255, [-50], 255),
    ],
)
def test_the_sum_stays_between_1_and_254_and_the_owner_at_255(base, changes, priority):
    assert tracking.effective(base, {str(at): change for at, change in enumerate(changes)}) == priority
