# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is noted about a configuration without faults."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import SCRIPT, Check
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.notes import notes
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.settings import Settings
from support.vrrp.fakes import FRONT, SECOND, SIX

GLOBAL_FIRST = SIX._replace(addresses=("2001:db8::10/64", "fe80::10/128"))


def of(*instances, checks=()):
    return notes(Settings(instances, checks=checks), lambda name: name == "eth0")


def test_there_is_nothing_to_note_about_most_configurations():
    assert of(FRONT, SIX, checks=(Check("check", SCRIPT),)) == []


@pytest.mark.parametrize(
    "instance, note",
    [
        (FRONT._replace(interface="eth9"), "this host has no interface eth9 now; until it has, this is a FAULT."),
        (GLOBAL_FIRST, "the first address is 2001:db8::10; RFC 9568, 5.2.9 requires a link-local one there."),
    ],
)
def test_an_instance_that_may_be_meant_otherwise_is_noted(instance, note):
    assert of(instance) == [f"{instance.name}: {note}"]


def test_a_check_that_may_still_run_when_the_next_run_is_due_is_noted():
    slow = Check("slow", SCRIPT, interval=SECOND // 2, timeout=2 * SECOND)
    assert of(checks=(slow,)) == [
        "slow: its timeout of 2 s is longer than its interval of 0.5 s; a run that hangs delays the next one."
    ]
