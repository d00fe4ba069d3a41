# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run says what each task has changed: every task that may change a host is in the table of its words."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.outcome_words import EVERY, REMOVAL, SET_UP
from support.paths import ROLES

ROLES_OF_A_RUN = ("agent", "direct_server", "frr", "haproxy", "ipi", "keepalived", "layout", "packages", "resolver")
TABLE = EVERY["present"]
# They change no host, or only what lasts until the run has ended.
READS = """agent_info component_info host_info layout_info layout_members member_info wait_for assert debug fail
meta raw refuse set_fact slurp stat validate_argument_spec member_lock include_role import_role
include_tasks import_tasks"""
# Of what no run of a layout plays, of its undo, and of what follows the outcome.
ELSEWHERE = {
    *(
        "layout/tasks/unlock.yml",
        "layout/tasks/drop.yml",
        "layout/tasks/routers/left_stopped.yml",
    ),
    *("agent/tasks/firewall.yml",),
}
# They go with a change that another task says.
ALONG = {
    "Direct | Have systemd load the unit",
    "Static pods | Have systemd read the router's drop-in",
    "Apply haproxy's kernel settings",
    "Run haproxy's start commands",
    "Remove | Reset its kernel settings",
    "Purge | Delete the empty folders of a package",
    "Remove | Take its packages out of the record",
    "Install | Record the installed packages",
    "Tell | Have NetworkManager read its configuration",
    "Remove | Cancel what an interrupted run has armed",
    "Remove | Have NetworkManager write /etc/resolv.conf again",
    "On the way | Have the resolver read both",
    "Migrate | Have routers prefer the others",
    "Migrate | Withdraw its paths, or have it stay",
    "Migrate | Have FRR run its file again",
}
# Hosts take turns with these tasks, and each records under another name what its own turn changed.
IN_TURN = {"__resolver_restarted": "__resolver_turned"}


def files():
    for role in ROLES_OF_A_RUN:
        for file in sorted([*(ROLES / role).glob("tasks/**/*.yml"), *(ROLES / role).glob("handlers/*.yml")]):
            name = str(file.relative_to(ROLES))
            if name not in ELSEWHERE and "/undo/" not in name:
                yield name, yaml.safe_load(file.read_text())


def changing(tasks):
    """Yield the tasks that may change a host, or in check mode say that they would."""
    for task in tasks:
        yield from changing(task.get("block", []))
        modules = {key.rpartition(".")[2] for key in task if "." in key}
        is_read = modules <= set(READS.split()) and "changed_when" not in task
        if modules and not is_read and task.get("changed_when") is not False and task["name"] not in ALONG:
            yield task


def said(task):
    """Return the variable that has what a task changed, at the end of the run."""
    return IN_TURN.get(task.get("register"), task.get("register"))


@pytest.mark.parametrize("name, tasks", list(files()), ids=lambda given: given if isinstance(given, str) else "")
def test_each_task_that_changes_a_host_is_said_at_the_end(name, tasks):
    assert {task["name"] for task in changing(tasks) if said(task) not in TABLE} == set()


def test_the_table_names_results_that_tasks_register_and_no_others():
    registered = {said(task) for _name, tasks in files() for task in changing(tasks)}
    assert set(TABLE) - registered == set()


def test_the_end_of_a_removal_has_the_words_of_all_that_it_does():
    """They name nothing that a removal does not read, as it must not fail for a wrong variable of something else."""
    own = {"layout/tasks/absent.yml", "layout/tasks/direct_absent.yml"}
    removing = [
        tasks for name, tasks in files() if name in own or name.endswith(("/remove.yml", "/purge.yml", "_absent.yml"))
    ]
    registered = {task.get("register") for tasks in removing for task in changing(tasks)}
    assert {*REMOVAL} == registered
    assert not {"{missing}", "{manifests}", "{departed}"} & {*re.findall(r"\{\w+\}", str([*REMOVAL.values()]))}
    assert not {*REMOVAL} & {*SET_UP}
