# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What drills have measured stands beside each bound of the forecast, for each layout and engine."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import lost_servers as drill
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import drilled as _drilled
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.servers import DRILLED_AS
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import drill_records
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, events
from support.plans.clusters import cluster
from support.plans.pairs import pair

NOW = 1769860800  # 2026-01-31T12:00:00Z
LAYOUTS = {"pair": (_pair.LAYOUT, pair), "ipi": (_ipi.LAYOUT, cluster)}
NAMES = {event: name for name, event in DRILLED_AS.items()}
OF = "measured {:.0f} ms, at worst {:.0f} ms (1 drill on 2026-01-30)"
every_kind = pytest.mark.parametrize(
    "layout, engine", [(layout, engine) for layout in LAYOUTS for engine in (engines.NATIVE, engines.AGENT)]
)


def forecast(layout, kept=drill_records.NONE, **settings):
    definition, members = LAYOUTS[layout]
    plan = planner.plan(definition, members(**settings), kept=kept)
    assert plan.faults == []
    return plan


def drilled(plan, over=0, **changes):
    """Return the records of a drill of each event of a plan, which took as long as the forecast says, and longer."""
    orders = {vip.address: vip.order for vip in plan.vips}
    rows = [
        {
            **{key: line[key] for key in ("vip", "event")},
            "limit_ms": line["outage_ms"],
            "members": {name: plan.members[name].engine for name in orders[line["vip"]]},
            "asks": "TLS at 6443",
            "outage_ms": line["outage_ms"] + over,
            **changes,
        }
        for line in plan.outages
    ]
    record = {"format": 1, "at": "2026-01-30T12:00:00Z", "rows": rows}
    return drill_records.read([{"path": "x.json", "text": json.dumps(record), "wrong": ""}], NOW)


def bounds(plan):
    return [line for line in plan.table if "at most" in line]


@every_kind
def test_each_bound_has_beside_it_what_was_measured(layout, engine):
    bare = forecast(layout, engine=engine)
    found = forecast(layout, drilled(bare), engine=engine)
    costs = [line["outage_ms"] for line in bare.outages]
    assert bounds(found) == [f"{line}; {OF.format(ms, ms)}" for line, ms in zip(bounds(bare), costs)]
    assert "not shown" not in str(found.table)


@every_kind
def test_each_bound_that_was_broken_is_marked(layout, engine):
    bare = forecast(layout, engine=engine)
    found = forecast(layout, drilled(bare, over=1), engine=engine)
    assert bounds(found) and all(line.endswith("THE BOUND WAS BROKEN") for line in bounds(found))


@every_kind
def test_what_was_measured_with_another_engine_is_not_shown_and_that_is_said(layout, engine):
    bare = forecast(layout, engine=engine)
    other = dict.fromkeys(bare.members, "another")
    found = forecast(layout, drilled(bare, members=other), engine=engine)
    assert bounds(found) == bounds(bare)
    said = [line for line in found.table if "1 drill of it not shown" in line]
    assert [line.partition(":")[0] for line in said] == [vip.address for vip in bare.vips]


@every_kind
def test_without_a_drill_nothing_is_said_of_drills(layout, engine):
    assert "drill" not in str(forecast(layout, engine=engine).table)


def test_what_units_have_measured_is_not_shown_for_static_pods():
    plan = forecast("ipi")
    pods = plan._replace(members={name: each._replace(pods={"x": "y"}) for name, each in plan.members.items()})
    assert any("drilled" in line for line in _drilled.beside(plan, plan.outages, drilled(plan)))
    assert not any("drilled" in line for line in _drilled.beside(pods, plan.outages, drilled(plan)))


def test_a_forecast_from_the_inventory_alone_knows_the_drills_of_the_living_hosts():
    unread = [{**member, "host": None, "address": member["name"]} for member in pair()]
    found = planner.plan(_pair.LAYOUT, unread, kept=drilled(forecast("pair")))
    assert bounds(found) and all("measured" in line for line in bounds(found))


def test_a_file_of_the_folder_that_is_no_record_is_said():
    kept = drill_records.read([{"path": "drills/x.json", "text": "{}", "wrong": ""}], NOW)
    assert "drills/x.json is skipped: it is not the record of a drill." in forecast("pair", kept).table


def lost_servers(layout, over=0, engine=engines.NATIVE, **changes):
    """Return the lines of lost servers, beside records that took as long as the forecast says, and longer."""
    definition, members = LAYOUTS[layout]
    given = members(engine=engine)
    plan = as_data(planner.plan(definition, given))
    rows = [
        {
            **{key: line[key] for key in ("vip", "event", "service")},
            "limit_ms": line["outage_ms"],
            "members": dict.fromkeys(vip["order"], engine),
            "asks": "HTTP at 80",
            "outage_ms": line["outage_ms"] + over,
            **changes,
        }
        for line in drill.lines(plan, given, events.ON_SERVER, "")
        for vip in plan["vips"]
        if vip["address"] == line["vip"]
    ]
    record = {"format": 1, "at": "2026-01-30T12:00:00Z", "rows": rows}
    kept = drill_records.read([{"path": "x.json", "text": json.dumps(record), "wrong": ""}], NOW)
    table = planner.plan(definition, given, kept=kept).table
    return rows, [line for line in table if "measured" in line], table


@every_kind
def test_each_loss_of_a_server_has_beside_it_what_was_measured_of_the_service(layout, engine):
    rows, found, _table = lost_servers(layout, engine=engine)
    assert len(rows) == len(found) and len(rows) >= 2
    for row, line in zip(rows, found):
        assert line.startswith(f"  {NAMES[row['event']]} ")
        assert line.endswith("; " + OF.format(row["outage_ms"], row["outage_ms"]))


def test_a_loss_that_lasted_longer_than_forecast_is_marked():
    assert all(line.endswith(": THE BOUND WAS BROKEN") for line in lost_servers("ipi", over=1)[1])


@pytest.mark.parametrize("changes", [{"service": "other"}, {"limit_ms": 1}, {"vip": "192.0.2.77"}, {"members": {}}])
def test_a_loss_of_another_service_bound_or_vip_does_not_count(changes):
    _rows, found, table = lost_servers("pair", **changes)
    assert found == [] and not any("not shown" in line for line in table)
