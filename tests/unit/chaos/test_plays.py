# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A seed draws one play, which can be played."""

from __future__ import annotations

import itertools

from ansible_collections.onprem.lb.plugins.module_utils._shared import events
from chaos import plays

SEEDS = range(200)


def test_a_seed_always_draws_the_same_play():
    assert plays.draw(7) == plays.draw(7) != plays.draw(8)


def test_the_first_rounds_of_a_longer_play_are_those_of_a_shorter_one():
    assert plays.draw(7, 40).rounds[:20] == plays.draw(7, 20).rounds


def test_one_member_is_never_without_a_fault():
    for seed in SEEDS:
        play = plays.draw(seed)
        for turn in play.rounds:
            failing = [fault.member for fault in turn.faults]
            assert len(set(failing)) == len(failing) < len(play.members), seed
            assert bool(turn.change) != bool(turn.faults), seed


def test_every_event_and_change_is_drawn_with_every_engine_and_version():
    drawn = [plays.draw(seed) for seed in SEEDS]
    seen = {
        (engine, play.settings["vrrp_version"], fault.event)
        for play in drawn
        for turn in play.rounds
        for fault in turn.faults
        for name, engine in zip(play.members, play.engines)
        if name == fault.member
    }
    assert seen == set(itertools.product(("native", "agent"), (2, 3), plays.LASTING + plays.AT_ONCE))
    assert {turn.change for play in drawn for turn in play.rounds} == {"", *plays.CHANGES}
    assert not [play for play in drawn if play.settings["vrrp_version"] == 3 and "password" in str(play.rounds)]


def test_chaos_has_every_event_of_a_drill_but_those_on_request_and_a_link_that_flaps_for_longer_than_a_round():
    left_out = {*events.ON_REQUEST, events.LINK_FLAPPING, *events.OF_BGP}  # it plays pairs of VRRP
    assert set(events.EVENTS) - left_out <= set(plays.LASTING + plays.AT_ONCE)
