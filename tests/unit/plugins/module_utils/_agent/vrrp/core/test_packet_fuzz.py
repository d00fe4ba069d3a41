# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short run of what tests/fuzz_packets.py does at length."""

from __future__ import annotations

import random

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from support.vrrp import mutations

PACKETS, SEED = 20_000, 3768


def test_a_second_opinion_agrees_on_every_mutated_message_and_each_verdict_is_reached():
    counts = mutations.run(PACKETS, SEED)
    assert counts.keys() == {*packet.REASONS, "accepted"}
    # A mutation that nearly always breaks the same thing would look at nothing behind it.
    assert min(counts.values()) > PACKETS / 1000, counts


def test_the_same_seed_gives_the_same_messages():
    first, second = (
        [mutations.mutated(rng) for _number in range(50)] for rng in (random.Random(SEED), random.Random(SEED))
    )
    assert first == second


@pytest.mark.parametrize(
    "broken",
    [
        lambda message, *_way: packet.Discard(packet.LENGTH, ""),
        lambda message, *_way: packet.Advertisement(2, message[1], message[2], 0, ()),
    ],
)
def test_a_wrong_decoder_is_found_and_its_message_shown(monkeypatch, broken):
    monkeypatch.setattr(packet, "decode", broken)
    with pytest.raises(AssertionError, match=rf"seed {SEED}, packet \d+: [0-9a-f]* \("):
        mutations.run(1000, SEED)
