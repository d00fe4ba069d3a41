# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role drill writes on the controller after its rounds, and with which words it fails."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from support.drills import ASKED
from support.playbooks import play

INVENTORY = "[probe]\nclient\n[pair]\nlb1\nlb2\n"
EVERY_FIGURE = ["bars", "strip", "lanes", "latency"]
SEEN = {
    "probed_ms": 5000.0,
    "series": " ".join(["7"] * 600 + ["t"] * 30 + ["9"] * 370),
    "started_at": 1769860800.0,
    "takeover": {"outage_ms": 150.0, "response_gap_ms": 160.0},
    "failback": {"outage_ms": 0.0},
    "tried": 1000,
    "failed_attempts": 30,
    "most_holders": 1,
    "two_holders_ms": 0.0,
    "no_holder_ms": 140.0,
    "holders_known": True,
    "holder_before": "lb1",
    "holder_after": "lb1",
    "timeline": [{"at_ms": 0.0, "holders": ["lb1"]}, {"at_ms": 3000.0, "holders": ["lb2"]}],
}
FORECAST = {"before": "lb1", "after": "lb2", "back": "lb1", "outage_ms": 3072, "back_ms": 60, "two_holders_ms": 0}
RESULT = {
    **ASKED,
    "vip": "192.0.2.10",
    "event": "host_cut",
    "forecast": FORECAST,
    "holder": "lb1",
    "member": "lb1",
    "interval_ms": 5.0,
    "seen": SEEN,
}
MEMBERS = {"results": [{"engine": "native", "versions": {"haproxy": "2.6.12"}}, {"unreachable": True}]}
FACTS = {
    "__drill_results": [RESULT],
    "__drill_kept": [],
    "__drill_before": MEMBERS,
    "__drill_after": MEMBERS,
    "__layout_plans": {"plans": [{"vips": [], "members": {}}], "faults": []},
}


def drilled(folder, *arguments, **facts):
    """Play the part of the role that follows its rounds."""
    steps = [
        {"ansible.builtin.set_fact": {**FACTS, **facts}},
        {"include_role": {"name": "onprem.lb.drill", "tasks_from": "report.yml"}, "when": "'probe' in group_names"},
    ]
    playbook = folder / "report.yml"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": steps}]))
    code, said = play(folder, INVENTORY, str(playbook), *arguments)
    return code, " ".join(said.split())


def records(folder):
    return sorted((folder / "drills").iterdir())


def record(outage):
    members = dict.fromkeys(("lb1", "lb2"), "native")
    row = {"vip": "192.0.2.10", "event": "host_cut", "outage_ms": outage, "limit_ms": 3072, "members": members}
    text = {"format": 1, "at": "9999-01-01T00:00:00Z", "rows": [{**row, "asks": "TLS at 8443"}]}
    return {"path": "drills/x.json", "text": json.dumps(text), "wrong": ""}


def test_a_drill_as_planned_is_kept_beside_the_user_and_prints_its_table(tmp_path):
    (tmp_path / "drills").mkdir()
    code, said = drilled(tmp_path)
    assert code == 0 and "| 192.0.2.10 | host cut | TLS at 8443 | lb1 | lb2 | 150 ms" in said
    (kept,) = records(tmp_path)
    found = json.loads(kept.read_text())
    assert found["members"]["lb1"]["versions"] == {"haproxy": "2.6.12"} and found["members"]["lb2"]["versions"] == {}
    assert (found["layout"], found["rows"][0]["outage_ms"], found["faults"]) == ("pair", 150.0, [])


def test_without_a_history_nothing_is_written(tmp_path):
    code, said = drilled(tmp_path, "-e", "drill_history=")
    assert code == 0, said
    assert not (tmp_path / "drills").exists()


@pytest.mark.parametrize(
    "given, told",
    [
        ('{"drill_budget": 100}', "192.0.2.10, host_cut: the VIP was not served for 150 ms, drill_budget is 100 ms."),
        ('{"drill_budget": 100, "drill_budgets": {"host_cut": 3500}}', ""),
        ('{"drill_budgets": {"host_cut": 100}}', "drill_budgets.host_cut is 100 ms."),
        ('{"drill_budget": 0}', ""),
    ],
    ids=["over", "own", "over its own", "none"],
)
def test_an_event_over_its_budget_fails_the_play_and_is_kept(tmp_path, given, told):
    (tmp_path / "drills").mkdir()
    code, said = drilled(tmp_path, "-e", given)
    assert (code != 0) == bool(told) and told in said
    assert [bool(json.loads(path.read_text())["faults"]) for path in records(tmp_path)] == [bool(told)]


def test_the_page_is_written_where_the_user_is_as_the_template_alone_gives_it(tmp_path):
    code, said = drilled(tmp_path, "-e", '{"drill_html": "drill.html", "drill_history": ""}')
    assert code == 0, said
    text = (tmp_path / "drill.html").read_text()
    page = ElementTree.fromstring(text)
    assert page.tag.endswith("html") and "1 event went as planned." in text
    assert [svg.get("class") for svg in page.iter("{http://www.w3.org/2000/svg}svg")] == EVERY_FIGURE


def test_an_event_slower_than_before_is_said_and_a_foreign_file_is_passed_over(tmp_path):
    foreign = {"path": "drills/package.json", "text": "{}", "wrong": ""}
    code, said = drilled(tmp_path, "-e", "drill_history=", __drill_kept=[foreign, *[record(20.0)] * 20])
    assert code == 0, said
    assert "host_cut: 150 ms is slower than the 95th percentile of your last 20 drills, 20 ms." in said
    assert "drills/package.json is skipped: it is not the record of a drill." in said


def test_a_file_in_the_place_of_the_history_is_refused_before_a_member_is_reached(tmp_path):
    (tmp_path / "drills").write_text("")
    plan = {
        "outages": [{"event": "haproxy_killed", "vip": "192.0.2.10", "before": "lb1", "after": "lb2", "back": "lb1"}]
    }
    plan["outages"][0].update(outage_ms=72)
    instance = {"preempt_delay": 0, "addresses": ["192.0.2.10/24"], "interface": "eth0"}
    plan.update(
        targets=[["192.0.2.10", 443]], members={"lb1": {"engine": "native", "router": {"instances": [instance]}}}
    )
    plan["advert_interval"] = 1
    known = {
        "__layout_plans": {"faults": [], "plans": [plan]},
        "__layout_member": {"name": "lb1", "host": {"addresses": []}},
    }
    plays = [
        {"hosts": "pair", "gather_facts": False, "tasks": [{"set_fact": known}]},
        {"hosts": "probe", "gather_facts": False, "roles": ["onprem.lb.drill"]},
    ]
    playbook = tmp_path / "drill.yml"
    playbook.write_text(json.dumps(plays))
    code, said = play(tmp_path, INVENTORY, str(playbook))
    said = " ".join(said.split())
    assert (
        code != 0
        and "drill_history is drills: it cannot be written (Not a directory)" in said
        and "UNREACHABLE" not in said
    )
