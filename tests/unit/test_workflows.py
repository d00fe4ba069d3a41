# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GitHub's workflows call make targets, and leave nothing out. They run only on GitHub, so these tests read them."""

from __future__ import annotations

import json
import re

import changed
import pytest
import yaml
from support.paths import ROOT
from support.scenarios import EVERY

WORKFLOWS = {file.stem: yaml.safe_load(file.read_text()) for file in ROOT.glob(".github/workflows/*.yml")}
ACTION = yaml.safe_load((ROOT / ".github/actions/python/action.yml").read_text())
JOBS = {(name, job): body for name, workflow in WORKFLOWS.items() for job, body in workflow["jobs"].items()}
STEPS = [step for body in JOBS.values() for step in body.get("steps", [])] + ACTION["runs"]["steps"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# GitHub's own command line, and the one way to fail a job for what others came to.
OTHER_COMMANDS = re.compile(r"gh (issue|release) create .*|exit 1")
MORE_RIGHTS = {("nightly", "report"): {"issues": "write"}, ("release", "github"): {"contents": "write"}}


@pytest.mark.parametrize("command", sorted({step["run"] for step in STEPS if "run" in step}))
def test_each_step_is_an_existing_make_target(command):
    words = command.split()
    assert OTHER_COMMANDS.fullmatch(command) or (words[0] == "make" and words[1] in TARGETS)


@pytest.mark.parametrize("name, job", JOBS)
def test_each_job_has_a_timeout_and_only_the_permissions_that_it_needs(name, job):
    body = JOBS[name, job]
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    assert "uses" in body or body["timeout-minutes"] <= 180
    assert body.get("permissions") == MORE_RIGHTS.get((name, job))


@pytest.mark.parametrize("action", sorted({step["uses"] for step in STEPS if "uses" in step}))
def test_an_action_is_ours_or_one_commit_of_another(action):
    assert action.startswith("./.github/") or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)


@pytest.mark.parametrize("name, last", [("pull", "done"), ("nightly", "report")])
def test_the_last_job_needs_every_other_one(name, last):
    jobs = WORKFLOWS[name]["jobs"]
    assert set(jobs[last]["needs"]) == set(jobs) - {last}


def test_the_nightly_run_has_every_scenario_on_every_image():
    runs = json.loads(WORKFLOWS["nightly"]["jobs"]["tests"]["with"]["runs"])
    assert set(EVERY) <= set(runs)


def test_a_release_runs_the_scenarios_of_a_change_of_everything():
    assert json.loads(WORKFLOWS["release"]["jobs"]["tests"]["with"]["runs"]) == changed.runs(["Makefile"])
