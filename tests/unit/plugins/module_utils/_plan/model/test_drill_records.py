# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of drills: which files are some, and which measurements are of these hosts with these settings."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import drill_records
from ansible_collections.onprem.lb.plugins.module_utils._shared import events, sealed
from support.damages import damaged, deep

NOW = 1769860800  # 2026-01-31T12:00:00Z
SUBJECT = drill_records.Subject("192.0.2.10", "host_cut", {"lb1": "native", "lb2": "native"}, 3072)
ROW = {
    "vip": "192.0.2.10",
    "event": "host_cut",
    "members": {"lb1": "native", "lb2": "native"},
    "limit_ms": 3072,
    "asks": "TLS at 6443",
    "outage_ms": 3040.0,
    "took_ms": [3040.0],
}
# A row of 1.0.0, whose record has the members.
OLD_ROW = {"vip": "192.0.2.10", "event": "host_cut", "limit_ms": 3072, "outage_ms": 3000.0, "outages_ms": [3000.0]}


def file(*rows, at="2026-01-30T12:00:00Z", **changes):
    record = {"format": 1, "at": at, "rows": rows, **changes}
    return {"path": f"drills/{at}.json", "text": json.dumps(record), "wrong": ""}


def measured(*files, subject=SUBJECT):
    return drill_records.measured(drill_records.read(files, NOW), subject)


def row(*took, **changes):
    return {**ROW, "took_ms": took, "outage_ms": took[0], **changes}


def test_the_median_and_the_worst_of_all_rounds_are_told_with_how_many_drills_and_the_last_date():
    found = measured(file(row(3000, 3050, 3010)), file(row(3020), at="2026-01-29T00:00:00Z"))
    assert (found.median_ms, found.worst_ms, found.rounds, found.each_ms) == (3015, 3050, 4, [3020, 3000])
    assert found.words == "measured 3015 ms, at worst 3050 ms (2 drills, the last on 2026-01-30)"
    assert measured(file(row(3000))).words == "measured 3000 ms, at worst 3000 ms (1 drill on 2026-01-30)"


@pytest.mark.parametrize("worst, broken", [(3072, False), (3072.1, True)])
def test_a_bound_that_was_broken_once_is_marked(worst, broken):
    found = measured(file(row(3000, worst)))
    assert (found.broken, found.words.endswith(": THE BOUND WAS BROKEN")) == (broken, broken)


OTHERS = {
    "VIP": {"vip": "192.0.2.11"},
    "event": {"event": "haproxy_killed"},
    "bound": {"limit_ms": 72},
    "member": {"members": {"lb1": "native", "lb3": "native"}},
    "number of members": {"members": {**ROW["members"], "lb3": "native"}},
    "engine": {"members": {"lb1": "native", "lb2": "agent"}},
    "unknown engine": {"members": {"lb1": "native", "lb2": ""}},
    "not measured": {"outage_ms": None, "took_ms": []},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_was_measured_of_something_else_does_not_count(other):
    assert measured(file({**ROW, **other})) is None
    assert measured(file({**ROW, **other}, ROW)).rounds == 1


@pytest.mark.parametrize("members", [{"lb1": "native", "lb2": ""}, {"lb1": "", "lb2": ""}])
def test_nothing_is_of_members_whose_engines_are_not_known(members):
    assert measured(file({**ROW, "members": members}), subject=SUBJECT._replace(members=members)) is None


@pytest.mark.parametrize("at, counts", [("2025-11-02T12:00:00Z", True), ("2025-11-02T11:59:59Z", False)])
def test_what_is_too_old_does_not_count(at, counts):
    assert (measured(file(ROW, at=at)) is not None) == counts


def test_only_what_was_asked_as_in_the_last_drill_counts_or_as_in_this_one():
    files = file(row(1, asks="connects only")), file(row(3000), at="2026-01-31T00:00:00Z")
    assert measured(*files).each_ms == [3000]
    assert measured(*files, subject=SUBJECT._replace(asks="connects only")).each_ms == [1]


def test_only_the_last_twenty_count_by_their_date():
    days = [file(row(day), at=f"2026-01-{day:02}T00:00:00Z") for day in range(31, 0, -1)]
    assert measured(*days).each_ms == [*range(12, 32)]


MEMBERS = {name: {"engine": "native"} for name in ("lb1", "lb2")}


def test_the_records_of_before_count_where_their_members_are_the_same():
    assert measured(file(OLD_ROW, members=MEMBERS)).each_ms == [3000]
    assert measured(file(OLD_ROW, members={"lb1": MEMBERS["lb1"]})) is None
    assert measured(file(OLD_ROW)) is None


@pytest.mark.parametrize("event", events.EVENTS)
def test_of_what_a_connection_does_not_show_the_records_of_before_do_not_count(event):
    subject = SUBJECT._replace(event=event)
    found = measured(file({**OLD_ROW, "event": event}, members=MEMBERS), subject=subject)
    assert (found is None) == (event in ("haproxy_hung", "slow_backend", *events.ON_SERVER))


def test_where_nothing_is_shown_of_a_vip_that_was_drilled_that_is_said():
    known = drill_records.read([file({**ROW, "limit_ms": 1}), file(ROW, at="2020-01-01T00:00:00Z")], NOW)
    assert drill_records.others(known, "192.0.2.10", False).startswith("2 drills of it not shown: over 90 days old")
    assert drill_records.others(known, "192.0.2.10", True) == drill_records.others(known, "192.0.2.11", False) == ""


FOREIGN = {
    "{": "it is not JSON",
    "[" * 100000: "it is not JSON",
    "[]": "it is not the record of a drill",
    '{"name": "package"}': "it is not the record of a drill",
    '{"format": 2, "at": "", "rows": []}': "its format is 2, and this version knows 1",
    '{"format": 1, "rows": []}': "it is not the record of a drill",
    '{"format": 1, "at": "", "rows": 5}': "it is not the record of a drill",
    '{"format": 1, "at": "", "rows": [], "members": {"lb1": 1}}': "it is not the record of a drill",
    '{"format": 1, "at": "", "rows": [{"vip": "", "event": ""}]}': "it is not the record of a drill",
    '{"format": 1, "at": "", "rows": [{"vip": "", "event": "", "outage_ms": NaN}]}': "it is not the record of a drill",
    '{"format": 1, "at": "", "rows": [{"vip": "", "event": "", "outage_ms": 1, "took_ms": ["x"]}]}': (
        "it is not the record of a drill"
    ),
    '{"format": 1, "at": "", "rows": [{"vip": "", "event": "", "outage_ms": 1, "members": 1}]}': (
        "it is not the record of a drill"
    ),
}


@pytest.mark.parametrize("text", FOREIGN, ids=lambda text: text[:90])
def test_a_foreign_file_is_one_sentence_and_the_others_count(text):
    known = drill_records.read([{"path": "drills/x.json", "text": text, "wrong": ""}, file(ROW)], NOW)
    assert known.unread == [f"drills/x.json is skipped: {FOREIGN[text]}."]
    assert drill_records.measured(known, SUBJECT).rounds == 1


def test_a_file_that_cannot_be_read_is_passed_over_too():
    unread = {"path": "x.json", "text": "", "wrong": "it is not text"}
    assert drill_records.read([unread], NOW).unread == ["x.json is skipped: it is not text."]


def test_a_record_of_which_any_part_is_damaged_is_skipped_in_a_sentence_or_counts():
    whole = json.loads(file(ROW, OLD_ROW, members={"lb1": {"engine": "native"}, "lb2": {"engine": "native"}})["text"])
    wrong = []
    for done, record in damaged(whole):
        try:
            kept = drill_records.read([{"path": "x.json", "text": json.dumps(record), "wrong": ""}], NOW)
            found = drill_records.measured(kept, SUBJECT), drill_records.others(kept, "192.0.2.10", False)
            assert len(kept.records) + len(kept.unread) == 1 and isinstance(found[0].words if found[0] else "", str)
        except Exception as error:  # whatever it is, it is a Python error
            wrong.append((done, repr(error)))
    assert wrong == []


def test_a_record_that_was_changed_since_it_was_written_is_skipped():
    whole = sealed.sealed(json.loads(file(ROW)["text"]))
    for done, record in damaged(whole):
        kept = drill_records.read([{"path": "x.json", "text": json.dumps(record), "wrong": ""}], NOW)
        as_it_was = json.dumps(record) == json.dumps(whole) or isinstance(record, dict) and "sha256" not in record
        assert as_it_was or (kept.records, len(kept.unread)) == ([], 1), done
    assert len(drill_records.read([{"path": "x.json", "text": json.dumps(whole), "wrong": ""}], NOW).records) == 1


def test_a_report_with_a_round_that_was_not_measured_is_a_report():
    rows = [{"vip": "192.0.2.10", "worst_ms": None}, {"vip": "192.0.2.11", "worst_ms": 12}]
    whole = {"rows": rows, "faults": [], "table": []}
    assert drill_records.last_report(json.dumps(whole), NOW) == {**whole, "at": NOW}
    assert drill_records.last_report(json.dumps({**whole, "rows": [{"vip": "192.0.2.10"}]}), NOW)["wrong"]


def test_a_report_of_which_any_part_is_damaged_is_one_or_says_why_it_is_none():
    whole = {"rows": [{"vip": "192.0.2.10", "worst_ms": 12}], "faults": ["slow"], "table": []}
    assert drill_records.last_report(json.dumps(whole), NOW) == {**whole, "at": NOW}
    for text in [*(json.dumps(record) for _done, record in damaged(whole)), deep(), "", "x"]:
        found = drill_records.last_report(text, NOW)
        assert (
            found.get("wrong")
            or found["faults"] is not None
            and all(row["worst_ms"] is None or row["worst_ms"] >= -1 for row in found["rows"])
        )
