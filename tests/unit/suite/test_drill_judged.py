# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios forgive a drill that was late, and nothing else: .config/molecule/tasks/drill_judged.yml."""

from __future__ import annotations

import json

import yaml
from support import playbooks
from support.paths import ROOT

LATE = "haproxy_killed on lb1: nothing answered for 900 ms, the plan says at most 500 ms."
# By case: the exit code, the faults that are reported (none: there is no report), and whether that is forgiven.
CASES = {
    "as planned": (0, [], True),
    "late": (2, [LATE], True),
    "never began": (2, None, False),
    "failed without a fault": (2, [], False),
    "late and lost": (2, [LATE, "lb2 never took the VIP."], False),
    "ended well in spite of a fault": (0, [LATE], False),
    "ended well without a report": (0, None, False),
}


def test_a_drill_may_be_late_and_must_have_begun(tmp_path):
    tasks = []
    for case, (code, faults, _forgiven) in CASES.items():
        report = tmp_path / case
        if faults is not None:
            report.write_text(json.dumps({"faults": faults}))
        given = {"drilled": {"rc": code}, "drilled_report": str(report), "drilled_said": ""}
        judge = {"ansible.builtin.include_tasks": f"{ROOT}/.config/molecule/tasks/drill_judged.yml", "vars": given}
        said = {"ansible.builtin.debug": {"msg": f"blamed: {case}."}}
        tasks.append({"block": [judge], "rescue": [said]})
    playbook = tmp_path / "play.yml"
    playbook.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    code, output = playbooks.play(tmp_path, "", str(playbook))
    assert code == 0, output
    assert {case: f"blamed: {case}." not in output for case in CASES} == {case: CASES[case][2] for case in CASES}
