# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of drills, and what they say of the next one."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import history
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import drill_records
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import pair

PLAN = as_data(_pair.plan(pair()))
LB1 = {
    "engine": "native",
    "versions": {"haproxy": "2.6.12", "keepalived": "2.2.7"},
    "instances": [{"addresses": ["192.0.2.10"], "state": "Active"}],
    "servers": {"total": 6, "up": 6},
    "unable": [],
}
ABOUT = {
    "at": "1769860800",
    "layout": "pair",
    "ansible": "2.19.0",
    "interval_ms": "5.0",
    "plans": [PLAN],
    "members": {"lb1": [LB1, {**LB1, "unable": ["haproxy.service does not run."]}], "lb2": [{"unreachable": True}] * 2},
}


ROW = {
    "vip": "192.0.2.10",
    "event": "haproxy_killed",
    "members": {"lb1": "native", "lb2": "native"},
    "limit_ms": 72,
    "asks": "TLS at 8443",
}


def report(outage=20.0, **changes):
    return {"rows": [{**ROW, "outage_ms": outage, **changes}], "faults": [], "table": [], "again": []}


def kept(*outages, **changes):
    """The files of earlier drills, one a day, the last one first."""
    records = [
        {"format": 1, "at": f"2026-01-{day:02}T00:00:00Z", "rows": report(outage, **changes)["rows"]}
        for day, outage in enumerate(outages, 1)
    ]
    files = [{"path": f"drills/{record['at']}.json", "text": json.dumps(record), "wrong": ""} for record in records]
    return files[::-1]


def compared(outage, files):
    return history.history(report(outage), ABOUT, files)


def test_a_record_that_was_written_is_read_with_its_checksum():
    record = history.history(report(), ABOUT, []).record
    (kept,) = drill_records.read([{"path": "x.json", "text": json.dumps(record, indent=4), "wrong": ""}], ABOUT["at"])[
        0
    ]
    assert kept["rows"] == report()["rows"]


def test_a_record_says_what_was_drilled_when_with_which_versions_and_how_it_went():
    found = history.history(report(), ABOUT, [])
    assert found.file == "20260131T120000Z-pair-lb1.json"
    record = dict(found.record)
    assert len(record.pop("sha256")) == 64
    assert (len(record.pop("inventory_sha256")), record.pop("collection")) == (64, history.VERSION)
    assert record == {
        "format": 1,
        "at": "2026-01-31T12:00:00Z",
        "layout": "pair",
        "ansible": "2.19.0",
        "members": {
            "lb1": {
                "engine": "native",
                "versions": {"haproxy": "2.6.12", "keepalived": "2.2.7"},
                "before": ["Active for 192.0.2.10", "6 of 6 servers up"],
                "after": ["Active for 192.0.2.10", "6 of 6 servers up", "haproxy.service does not run."],
            },
            "lb2": {"engine": "", "versions": {}, "before": [], "after": []},
        },
        "rows": report()["rows"],
        "faults": [],
    }


def test_a_record_can_be_read_again_and_counts():
    text = json.dumps(history.history(report(12.0), ABOUT, []).record)
    found = compared(90.0, [{"path": f"{day}.json", "text": text, "wrong": ""} for day in range(5)])
    assert [each["before"]["median_ms"] for each in found.comparisons] == [12.0] and len(found.lines) == 1


def test_the_hash_is_of_what_is_planned_but_not_of_passwords_or_of_the_forecast():
    other = copy.deepcopy(PLAN)
    other["members"]["lb1"]["router"]["instances"][0]["auth_pass"] = "secret"
    other["outages"] = []
    assert history.digest([other]) == history.digest([PLAN])
    other["members"]["lb1"]["router"]["instances"][0]["priority"] -= 1
    assert history.digest([other]) != history.digest([PLAN])


def slower(found):
    return [each["slower"] for each in found.comparisons]


def test_an_event_is_slower_than_before_beyond_the_95th_percentile_and_the_probes_interval():
    files = kept(*range(10, 30))
    assert slower(compared(33.0, files)) == [False]
    assert compared(33.1, files).lines == [
        "192.0.2.10, haproxy_killed: 33.1 ms is slower than the 95th percentile of your last 20 drills, 28 ms."
    ]


def test_each_event_stands_beside_what_was_measured_before_and_what_the_plan_says():
    (line,) = compared(33.0, kept(20, 40)).lines
    assert line == (
        "192.0.2.10, haproxy_killed: 33 ms; before, measured 30 ms, at worst 40 ms (2 drills, the last on 2026-01-02); "
        "the plan says at most 72 ms."
    )
    (before,) = (each["before"] for each in compared(33.0, kept(20, 40)).comparisons)
    assert (before["median_ms"], before["worst_ms"]) == (30, 40)


@pytest.mark.parametrize("drills, told", [(4, [False]), (5, [True])])
def test_a_few_drills_are_no_distribution(drills, told):
    assert slower(compared(5000.0, kept(*[10] * drills))) == told


def test_what_is_not_measured_is_not_compared():
    assert compared(None, kept(*[10] * 20)).comparisons == []


def test_a_file_that_is_no_record_is_said():
    unread = {"path": "x.json", "text": "", "wrong": "it is not text"}
    assert compared(1.0, [unread]).lines == ["x.json is skipped: it is not text."]


@pytest.mark.parametrize("rank, value", [(1, 1), (50, 10), (95, 19), (100, 20)])
def test_a_percentile_is_one_of_the_values(rank, value):
    assert history.percentile([*range(20, 0, -1)], rank) == value
