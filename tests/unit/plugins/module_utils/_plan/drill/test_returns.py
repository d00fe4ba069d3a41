# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member is back from its reboot when it has rebooted and is as it was."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import returns

BEFORE = {
    "booted": "Sat 2026-01-31 12:00:00 UTC",
    "engine": "native",
    "versions": {"haproxy": "2.6.12", "keepalived": "2.2.7"},
    "macs": ["02:00:00:00:00:01"],
    "ports": [80, 443],
    "servers": {"total": 2, "up": 2, "others": []},
    "unable": [],
    "stale": [],
    "held": [{"address": "192.0.2.10", "seconds": 3600}],
}
NOW = {**BEFORE, "booted": "Sat 2026-01-31 12:01:00 UTC"}


def test_a_member_that_is_as_it_was_is_back():
    assert returns.differences(BEFORE, NOW) == []


def test_what_a_member_holds_is_for_the_probe_to_say():
    assert returns.differences(BEFORE, {**NOW, "held": []}) == []


@pytest.mark.parametrize(
    "now, sentence",
    [
        (BEFORE, "It has not rebooted yet."),
        ({"unreachable": True, "msg": "ssh: no route to host"}, "It cannot be read: ssh: no route to host"),
        ({"skipped": True}, "It cannot be read: no answer"),
        ({**NOW, "ports": [80]}, "Its ports were 80 443, and now 80."),
        ({**NOW, "engine": ""}, "Its engine was native, and now none."),
        ({**NOW, "servers": {"total": 2, "up": 0}}, "Its servers were total 2, up 2, and now total 2, up 0."),
        ({**NOW, "unable": ["vip is in FAULT."]}, "Its faults were none, and now vip is in FAULT."),
    ],
)
def test_what_is_not_as_it_was_is_one_sentence(now, sentence):
    assert returns.differences(BEFORE, now) == [sentence]


def test_a_member_that_was_not_whole_before_need_not_be_better_after():
    ill = {"unable": ["haproxy.service does not run."]}
    assert returns.differences({**BEFORE, **ill}, {**NOW, **ill}) == []
