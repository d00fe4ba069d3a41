# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each playbook that a sentence about living members names is played by a test in the state in which it is named.

The sentences are collected, and each place that names one needs its cases. Those that no other file has are at the end.
"""

from __future__ import annotations

import ast
import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import order
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import status
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.members import DOWN, RECORD, host, seen
from support.paths import DOCS, MODULE_UTILS, PLAYBOOKS, ROOT
from support.plans.transitions import living

SITE = "onprem.lb.site"
UNIT = "tests/unit"
STAGES = "roles/test_stages.py::"
OF_MAINTENANCE = "plugins/module_utils/_plan/operations/test_maintenance.py::"
PLACES = [
    *(MODULE_UTILS / "_plan/operations").glob("*.py"),
    *(MODULE_UTILS / "_host/states").glob("*.py"),
    *(MODULE_UTILS / path for path in ("_shared/held_back.py", "_host/read/member.py", "_host/read/unconfirmed.py")),
    *(PLAYBOOKS / "tasks").glob("*.yml"),
    DOCS / "symptoms.md",
]
NAMES = "|".join(sorted((each.stem for each in PLAYBOOKS.glob("*.yml")), key=len, reverse=True))
COMMAND = re.compile(rf"\bonprem\.lb\.(?:{NAMES})\b(?: -e \w+=\w+)*")

FRESH = ["playbooks/test_pair.py::test_a_first_deployment_installs_checks_configures_verifies_and_shows_no_password"]
HELD_BACK = [
    "test_mends.py::test_a_run_without_the_dead_holder_starts_the_routers_that_are_held_back",
    "test_mends.py::test_what_status_names_while_the_holder_cannot_be_reached_begins_without_it",
    f"{STAGES}test_a_router_that_was_stopped_starts_again",
]
RETURNED = [
    "roles/test_lock.py::test_only_a_run_that_changes_the_settings_goes_on_with_an_interrupted_one",
    "plugins/module_utils/_host/states/test_arming.py::test_the_next_run_ends_one_that_has_begun",
]
DEPARTED = ["roles/test_members.py::test_the_router_of_a_member_that_has_left_stops_wherever_it_holds_a_vip"]
MIGRATES = [
    "roles/test_stages.py::test_the_members_migrate_one_after_the_other_and_the_last_one_is_verified_as_a_whole"
]
RESOLVED = [f"{STAGES}test_the_resolver_is_set_up_or_removed"]
STATUS = ["playbooks/test_status.py::test_members_that_do_not_answer_are_named_in_the_table_and_fail_the_run"]
MAINTAINED = [
    "plugins/module_utils/_plan/operations/test_maintenance.py::test_the_same_maintenance_goes_on_with_the_member_that_it_holds_back"
]
DRY = ["playbooks/test_pair.py::test_a_dry_run_changes_nothing_and_says_what_to_run_next"]
DRAINED = [
    "plugins/module_utils/_host/write/test_frr.py::test_a_file_that_is_as_wanted_and_was_not_loaded_is_loaded",
    "plugins/module_utils/_plan/layouts/test_units.py::"
    "test_a_member_that_announces_is_let_go_with_its_gate_because_it_is_proved_before_the_next_one",
]
LEFT = ["playbooks/test_leave.py::test_wherever_a_run_is_cut_off_somebody_serves_and_it_is_said"]
BACK = ["playbooks/test_switchover.py::test_the_way_back_needs_nobody_else"]
# By the end of a place, and the command that it names.
CASES = {
    ("_shared/held_back.py", SITE): HELD_BACK,
    ("_shared/held_back.py", "onprem.lb.maintenance"): MAINTAINED,
    ("_shared/held_back.py", "onprem.lb.switchover -e switchover_back=true"): BACK,
    ("read/member.py", SITE): FRESH,
    ("read/unconfirmed.py", SITE): RETURNED,
    ("states/arming.py", SITE): RETURNED,
    ("states/undo.py", SITE): RETURNED,
    ("states/fallback.py", SITE): HELD_BACK,
    ("operations/announcing.py", SITE): DRAINED,
    ("operations/announcing.py", "onprem.lb.switchover -e switchover_back=true"): LEFT,
    ("operations/draining.py", SITE): FRESH,
    ("operations/draining.py", "onprem.lb.status"): LEFT,
    ("operations/draining.py", "onprem.lb.switchover -e switchover_back=true"): LEFT,
    ("operations/maintenance.py", SITE): HELD_BACK,
    ("operations/rollback.py", SITE): [*MIGRATES, *FRESH, *RESOLVED, *DEPARTED],
    ("operations/steps.py", SITE): [*DEPARTED, *FRESH],
    ("operations/turns.py", SITE): FRESH,
    ("operations/firewalls.py", SITE): [
        "roles/test_units.py::test_a_firewall_is_opened_where_one_is_active_and_a_router_runs"
    ],
    ("operations/status.py", SITE): DRY,
    ("operations/holding.py", SITE): FRESH,
    ("operations/switchover.py", SITE): HELD_BACK,
    ("operations/backup.py", "onprem.lb.backup"): [
        "playbooks/test_backup.py::test_the_states_of_all_members_are_written_once_on_the_controller_and_shown_nowhere"
    ],
    ("tasks/move.yml", "onprem.lb.status"): STATUS,
    ("tasks/begin.yml", "onprem.lb.status"): [
        "playbooks/test_status.py::test_of_members_that_announce_each_is_to_announce_all_of_its_own"
    ],
    ("tasks/begin.yml", "onprem.lb.ipi"): [f"{STAGES}test_static_pods_stop_and_start_as_pods"],
    ("docs/symptoms.md", SITE): [*RETURNED, *HELD_BACK, *FRESH],
    ("docs/symptoms.md", f"{SITE} -e pair_break_lock=true"): [
        "plugins/action/test_member_lock.py::test_the_lock_of_a_run_that_lives_is_respected_until_it_is_broken"
    ],
    ("docs/symptoms.md", "onprem.lb.status"): STATUS,
    ("docs/symptoms.md", "onprem.lb.survey -e survey_hosts=pair"): [
        "plugins/module_utils/_shared/test_vrrp_routers.py::test_the_survey_has_one_line_for_a_router_that_several_hosts_hear"
    ],
    ("docs/symptoms.md", "onprem.lb.switchover -e switchover_back=true"): BACK,
}


def sentences(file):
    """Yield the texts of a file that a user reads: of Python its strings, with {} for what is put in."""
    if file.suffix != ".py":
        yield "\n".join(line for line in file.read_text().splitlines() if not re.match(r"\s*# ", line))
        return
    tree = ast.parse(file.read_text())
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    of_others = {id(getattr(body[0], "value", None)) for body in bodies if body}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            of_others |= {id(part) for part in node.values}
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in of_others:
            yield node.value


def named(file):
    return {command for text in sentences(file) for command in COMMAND.findall(text)}


def test_each_playbook_that_a_sentence_names_has_its_cases():
    found = {("/".join(file.parts[-2:]), command) for file in PLACES for command in named(file)}
    assert found == {*CASES}


@pytest.mark.parametrize("name", sorted({name for names in CASES.values() for name in names}))
def test_each_case_is_a_test(name):
    path, _colons, test = name.partition("::")
    assert f"\ndef {test}(" in (ROOT / UNIT / path).read_text()


# -- what is played here

THREE = ["lb1", "lb2", "lb3"]


def test_a_run_without_the_dead_holder_starts_the_routers_that_are_held_back():
    """Nobody serves: lb3 had the VIPs."""
    members = living(3, holder="lb3")
    recorded = {each["name"]: [each["name"], each["host"]["addresses"][1]["address"]] for each in members}
    for each in members[:2]:
        each["host"].update(held_back=RECORD, active_units=["haproxy.service"], members=recorded)
    members[2].update(host=None, silent=True, outside_limit=True, address="lb3")
    plan = _pair.plan(members)
    assert plan.faults == []
    (wave,) = order.waves([as_data(plan)], [])
    assert {"lb1", "lb2"} <= {*wave.members} and (wave.proves, wave.hands_over) == ([], [])


@pytest.mark.parametrize("during", ["switchover", "maintenance"])
def test_what_status_names_while_the_holder_cannot_be_reached_begins_without_it(during):
    """A run refuses to begin while a member does not answer, unless --limit leaves it out."""
    record = {**RECORD, "during": during, "work": "", "done": ""}
    given = [host(name, seen(at, held_back=record), THREE) for at, name in enumerate(THREE[:2], 1)]
    lines = status.status([*given, host("lb3", DOWN, THREE)]).lines
    assert sum("onprem.lb.site --limit '!lb3'" in line for line in lines) == 2
    assert not any(re.search(f"{SITE} (?!--limit|--check)", line) for line in lines)
