# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a transcript adds up to. The transcripts are made by hand, on a grid of 5 ms."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import measurement
from hypothesis import given
from hypothesis import strategies as st

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
NAMES = {A: "lb1", B: "lb2"}


def transcript(length=1000, bad=(), held=(), step=5, outcome="timeout"):
    """``bad``: [(from, to)] in which attempts fail. ``held``: [(mac, from, to)], answers half a ms after
    the question."""
    grid = [float(at) for at in range(0, length, step)]
    return measurement.Transcript(
        attempts=[
            measurement.Attempt(at, at + 300, outcome)
            if any(b <= at < e for b, e in bad)
            else measurement.Attempt(at, at + 1, "ok")
            for at in grid
        ],
        probes=grid,
        sightings=[(at + 0.5, mac) for at in grid for mac, begin, end in held if begin <= at < end],
        length_ms=float(length),
    )


def report(*args, **kwargs):
    return measurement.report(transcript(*args, **kwargs), NAMES, True)


def line(seen):
    return [(step["at_ms"], step["holders"]) for step in seen["timeline"]]


def test_without_a_failure_there_is_no_outage_and_everything_is_takeover():
    seen = report(held=[(A, 0, 1000)])
    assert (seen["tried"], seen["failed_attempts"], seen["slow"], seen["outages"]) == (200, 0, 0, [])
    assert seen["takeover"] == {"outage_ms": 0.0, "response_gap_ms": 5.0, "total_ms": 0.0, "failed": 0, "tried": 200}
    assert seen["failback"] == {"outage_ms": 0.0, "response_gap_ms": 0.0, "total_ms": 0.0, "failed": 0, "tried": 0}
    assert line(seen) == [(0.0, ["lb1"])]
    assert (seen["holder_before"], seen["holder_after"], seen["most_holders"]) == ("lb1", "lb1", 1)
    assert (seen["two_holders_ms"], seen["no_holder_ms"]) == (0.0, 0.0)


def test_an_outage_goes_from_the_first_failed_start_to_the_next_good_one():
    seen = report(bad=[(200, 267)])
    assert seen["outages"] == [{"start_ms": 200.0, "length_ms": 70.0, "failed": 14, "ended": True}]


def test_an_outage_that_outlasts_the_probe_is_not_ended():
    seen = report(bad=[(900, 1000)])
    assert seen["outages"] == [{"start_ms": 900.0, "length_ms": 100.0, "failed": 20, "ended": False}]


def test_attempts_that_end_in_another_order_than_they_began_are_judged_by_their_beginning():
    attempts = [
        measurement.Attempt(10, 11, "ok"),
        measurement.Attempt(5, 305, "timeout"),
        measurement.Attempt(0, 1, "ok"),
    ]
    assert measurement.outages(attempts, 20) == [measurement.Outage(5, 5, 1, True)]


def test_connections_that_had_to_wait_are_a_response_gap_though_not_an_outage():
    waited = transcript()
    waited.attempts = [a._replace(end_ms=700.0) if 500 <= a.start_ms < 700 else a for a in waited.attempts]
    seen = measurement.report(waited, NAMES, True)
    assert (seen["failed_attempts"], seen["takeover"]["outage_ms"]) == (0, 0.0)
    assert seen["takeover"]["response_gap_ms"] == 204.0


def test_a_slow_attempt_has_failed():
    seen = report(bad=[(200, 210)], outcome="slow")
    assert (seen["failed_attempts"], seen["slow"], seen["failures"]) == (2, 2, {"slow": 2})
    assert seen["outages"][0]["length_ms"] == 10.0


def test_a_takeover_and_a_failback_are_told_apart():
    seen = report(
        2000,
        bad=[(500, 570), (1500, 1510)],
        held=[(A, 0, 500), (B, 560, 1500), (A, 1500, 2000)],
    )
    assert line(seen) == [(0.0, ["lb1"]), (500.0, []), (560.5, ["lb2"]), (1500.0, []), (1500.5, ["lb1"])]
    keys = ("outage_ms", "response_gap_ms", "total_ms", "failed", "tried")
    assert seen["takeover"] == dict(zip(keys, (70.0, 74.0, 70.0, 14, 114)))
    assert seen["failback"] == dict(zip(keys, (10.0, 15.0, 10.0, 2, 286)))
    assert (seen["holder_before"], seen["holder_after"]) == ("lb1", "lb1")


def test_the_takeover_lasts_until_the_new_holder_serves_not_only_holds():
    seen = report(bad=[(500, 800)], held=[(A, 0, 500), (B, 510, 1000)])
    assert seen["takeover"]["outage_ms"] == 300.0
    assert seen["failback"]["failed"] == 0
    assert seen["failback"]["tried"] == 40


def test_a_new_holder_that_never_serves_leaves_everything_in_the_takeover():
    seen = report(bad=[(500, 1000)], held=[(A, 0, 500), (B, 510, 1000)])
    assert (seen["takeover"]["failed"], seen["failback"]["tried"]) == (100, 0)


def test_two_holders_are_seen_for_as_long_as_both_answer():
    seen = report(held=[(A, 0, 700), (B, 500, 1000)])
    assert line(seen) == [(0.0, ["lb1"]), (500.5, ["lb1", "lb2"]), (700.0, ["lb2"])]
    assert (seen["most_holders"], seen["two_holders_ms"]) == (2, 199.5)


def test_a_hand_over_between_two_questions_is_no_moment_of_two_holders():
    seen = report(held=[(A, 0, 500), (B, 500, 1000)])
    assert (seen["most_holders"], seen["two_holders_ms"]) == (1, 0.0)
    assert seen["no_holder_ms"] == pytest.approx(0.5)


@pytest.mark.parametrize("second, both", [(A, 0.2), (B, 0.0)])
def test_a_question_that_both_answered_counts_for_the_time_between_the_answers(second, both):
    """The former holder answers it last, or for the last time before the new one does."""
    shared = transcript(held=[(A, 0, 500), (B, 505, 1000)])
    first = B if second == A else A
    shared.sightings += [(500.5, first), (500.7, second)]
    assert measurement.report(shared, NAMES, True)["two_holders_ms"] == both


def test_a_second_holder_that_answers_but_once_is_seen():
    once = transcript(held=[(A, 0, 1000)])
    once.sightings.append((500.7, B))
    seen = measurement.report(once, NAMES, True)
    assert line(seen) == [(0.0, ["lb1"]), (500.7, ["lb1", "lb2"]), (505.0, ["lb1"])]


def test_two_holders_to_the_end_leave_no_holder_after():
    seen = report(held=[(A, 0, 1000), (B, 500, 1000)])
    assert (seen["holder_before"], seen["holder_after"]) == ("lb1", None)
    # Not a takeover: the new one never held it alone.
    assert seen["failback"]["tried"] == 0


@pytest.mark.parametrize(("missed", "gone"), [(9, 0.0), (10, 50.0)])
def test_a_lone_holder_may_miss_some_questions(missed, gone):
    seen = report(held=[(A, 0, 500), (A, 500 + 5 * missed, 1000)])
    assert seen["no_holder_ms"] == pytest.approx(gone + (0.5 if gone else 0))


@pytest.mark.parametrize(("missed", "steps"), [(3, 1), (4, 3)])
def test_a_holder_may_miss_fewer_probes_while_another_one_answers(missed, steps):
    seen = report(held=[(B, 0, 1000), (A, 0, 500), (A, 500 + 5 * missed, 1000)])
    assert len(seen["timeline"]) == steps


def test_no_holder_is_missed_while_no_probe_is_sent():
    paused = transcript(held=[(A, 0, 1000)])
    paused.probes = [at for at in paused.probes if not 300 <= at < 800]
    paused.sightings = [(at, mac) for at, mac in paused.sightings if not 300 <= at < 800]
    assert measurement.report(paused, NAMES, True)["no_holder_ms"] == 0.0


def test_a_member_is_one_holder_with_however_many_macs():
    seen = measurement.report(transcript(held=[(A, 0, 500), (B, 400, 1000)]), {A: "lb1", B: "lb1"}, True)
    assert line(seen) == [(0.0, ["lb1"])]


def test_a_stranger_goes_by_its_mac():
    seen = report(held=[("02:00:00:00:00:99", 0, 1000)])
    assert seen["holder_before"] == "02:00:00:00:00:99"


def test_a_claim_between_two_questions_ends_the_former_holder():
    early = transcript(held=[(A, 0, 500), (B, 500, 1000)])
    early.sightings.append((497.0, B))
    seen = measurement.report(early, NAMES, True)
    assert line(seen) == [(0.0, ["lb1"]), (497.0, ["lb2"])]
    assert (seen["two_holders_ms"], seen["no_holder_ms"]) == (0.0, 0.0)


def test_no_result_has_a_name_by_which_ansible_would_judge_the_task():
    seen = report(bad=[(200, 300)])
    assert not {"failed", "skipped", "unreachable", "changed", "rc", "msg", "exception"} & set(seen)


def lost(*attempts):
    """What a probe saw of a lost server: ``(start, took, outcome)``, beside one attempt each 5 ms that took 2 ms."""
    others = [measurement.Attempt(float(at), at + 2.0, "ok") for at in range(0, 1000, 5)]
    return measurement.impaired([*others, *(measurement.Attempt(at, at + took, how) for at, took, how in attempts)])


def test_where_every_attempt_is_in_time_no_server_is_missed():
    seen = {"late": 0, "failed": 0, "open": 0, "window_ms": 0, "attempts": 0, "worst_ms": 2, "usual_ms": 2}
    assert lost() == seen


def test_attempts_that_are_late_are_counted_from_the_first_to_the_last():
    seen = lost((100.5, 1060, "slow"), (300.5, 1050, "slow"), (200.5, 1040, "slow"))
    assert [seen[key] for key in ("late", "failed", "window_ms", "worst_ms", "usual_ms")] == [3, 0, 200, 1060, 2]
    assert seen["attempts"] == 40 + 3


def test_an_attempt_that_was_open_when_it_happened_is_told_from_those_that_fail_later():
    seen = lost((100.5, 1800, "timeout"), (102.4, 1, "closed"), (110, 1060, "slow"))
    assert (seen["open"], seen["failed"], seen["late"]) == (2, 0, 1)
    assert lost((100.5, 1800, "timeout"), (102.6, 1, "closed"))["failed"] == 1


def test_an_answer_after_the_end_does_not_count():
    late = transcript(held=[(A, 0, 950)])
    assert measurement.report(late, NAMES, True)["holder_after"] is None
    late.sightings.append((1100.0, A))
    assert measurement.report(late, NAMES, True)["holder_after"] is None


def test_where_holders_are_unknown_nothing_is_said_about_them():
    seen = measurement.report(transcript(bad=[(500, 600)]), NAMES, False)
    assert (seen["timeline"], seen["holder_before"], seen["most_holders"]) == ([], None, 0)
    assert (seen["no_holder_ms"], seen["takeover"]["outage_ms"]) == (0.0, 100.0)


def test_nothing_tried_is_nothing_failed():
    seen = measurement.report(measurement.Transcript(length_ms=0.0), {}, True)
    assert (seen["tried"], seen["takeover"]["outage_ms"], seen["timeline"]) == (
        0,
        0.0,
        [{"at_ms": 0.0, "holders": []}],
    )


spans = st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 200), st.integers(0, 200)), max_size=6)


@given(spans, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=4))
def test_the_parts_always_add_up(held, bad):
    seen = report(held=[(m, 5 * b, 5 * e) for m, b, e in held], bad=[(5 * b, 5 * e) for b, e in bad])
    phases = (seen["takeover"], seen["failback"])
    assert sum(phase["tried"] for phase in phases) == seen["tried"]
    assert (
        sum(phase["failed"] for phase in phases) == seen["failed_attempts"] == sum(o["failed"] for o in seen["outages"])
    )
    total = sum(phase["total_ms"] for phase in phases)
    assert total == pytest.approx(sum(o["length_ms"] for o in seen["outages"]))
    steps = line(seen)
    assert [at for at, _holders in steps] == sorted({at for at, _holders in steps})
    assert all(one[1] != two[1] for one, two in zip(steps, steps[1:]))
    assert seen["two_holders_ms"] + seen["no_holder_ms"] <= seen["probed_ms"] + 0.1
