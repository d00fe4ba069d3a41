# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GitHub's workflows call make targets, and leave nothing out. They run only on GitHub, so these tests read them."""

from __future__ import annotations

import json
import re

import changed
import pytest
import pythons
import stress
import yaml
from interruptions.operations import LAYOUTS
from suite.stages import GROUPS
from support.paths import ROOT
from support.scenarios import EVERY

WORKFLOWS = {file.stem: yaml.safe_load(file.read_text()) for file in ROOT.glob(".github/workflows/*.yml")}
ACTION = yaml.safe_load((ROOT / ".github/actions/python/action.yml").read_text())
JOBS = {(name, job): body for name, workflow in WORKFLOWS.items() for job, body in workflow["jobs"].items()}
STEPS = [step for body in JOBS.values() for step in body.get("steps", [])] + ACTION["runs"]["steps"]
RECIPES = dict(re.findall(r"^([a-z-]+):(.*(?:\n\t.*)*)", (ROOT / "Makefile").read_text(), re.MULTILINE))
TARGETS = set(RECIPES)
RANDOM = {target for target, recipe in RECIPES.items() if "$(SEED)" in recipe or "$(or $(SEED)," in recipe}
# GitHub's own command line, the one way to fail a job for what others came to, and what a bare Debian lacks for make.
DEBIAN = "apt-get update && apt-get install --yes --no-install-recommends ca-certificates git make python3-venv"
OTHER_COMMANDS = re.compile(rf"gh (issue|release) create .*|exit 1|{re.escape(DEBIAN)}")
UNTRIED = ("redhat",)  # gates nothing
MORE_RIGHTS = {("nightly", "report"): {"issues": "write"}, ("release", "github"): {"contents": "write"}}


@pytest.mark.parametrize("command", sorted({step["run"] for step in STEPS if "run" in step}))
def test_each_step_is_an_existing_make_target(command):
    words = command.split()
    assert OTHER_COMMANDS.fullmatch(command) or (words[0] == "make" and words[1] in TARGETS)


@pytest.mark.parametrize("name, job", JOBS)
def test_each_job_has_a_timeout_and_only_the_permissions_that_it_needs(name, job):
    body = JOBS[name, job]
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    assert "uses" in body or body["timeout-minutes"] <= 300
    assert body.get("permissions") == MORE_RIGHTS.get((name, job))


@pytest.mark.parametrize("action", sorted({step["uses"] for step in STEPS if "uses" in step}))
def test_an_action_is_ours_or_one_commit_of_another(action):
    assert action.startswith("./.github/") or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)


@pytest.mark.parametrize("name, last", [("pull", "done"), ("nightly", "report")])
def test_the_last_job_needs_every_other_one(name, last):
    jobs = WORKFLOWS[name]["jobs"]
    assert set(jobs[last]["needs"]) == set(jobs) - {last, *UNTRIED}
    assert [job for job in jobs if jobs[job].get("continue-on-error")] == list(UNTRIED)


def test_the_nightly_run_has_every_scenario_on_every_image():
    runs = json.loads(WORKFLOWS["nightly"]["jobs"]["tests"]["with"]["runs"])
    assert set(EVERY) <= set(runs)


def test_a_release_runs_the_scenarios_of_a_change_of_everything():
    assert json.loads(WORKFLOWS["release"]["jobs"]["tests"]["with"]["runs"]) == changed.runs(["Makefile"])


def called(*workflows):
    """Return the make targets that these workflows call."""
    runs = [
        step.get("run", "")
        for (name, _job), body in JOBS.items()
        if name in workflows
        for step in body.get("steps", [])
    ]
    return {run.split()[1] for run in runs if run.startswith("make ")}


def test_the_nightly_run_has_each_group_of_stages_and_each_random_test():
    assert called("nightly", "tests") >= {*GROUPS, *RANDOM} - {"test", stress.GROUP}
    assert {"simulate", "fuzz", "chaos", "stress", "mutants"} <= RANDOM
    assert WORKFLOWS["nightly"]["env"]["SCOPE"] == "full" == WORKFLOWS["nightly"]["jobs"]["tests"]["with"]["scope"]


def test_a_failed_nightly_run_says_how_to_repeat_each_random_test():
    body = WORKFLOWS["nightly"]["jobs"]["report"]["steps"][0]["env"]["BODY"]
    assert set(re.findall(r"`make ([a-z-]+)\b.*?`", body)) >= RANDOM


def test_the_nightly_run_kills_runs_of_each_cycle():
    matrix = WORKFLOWS["nightly"]["jobs"]["interruptions"]["strategy"]["matrix"]
    assert {name: list(layout.cycles()) for name, layout in LAYOUTS.items()} == dict.fromkeys(
        matrix["layout"], matrix["cycle"]
    )


def test_no_python_that_the_nightly_run_tests_is_missing():
    step = next(step for step in JOBS["tests", "pythons"]["steps"] if step.get("uses") == "./.github/actions/python")
    versions = [tuple(map(int, version.split("."))) for version in step["with"]["version"].split()]
    wanted = pythons.select([pythons.Interpreter(each, "") for each in versions], versions[-1], full=True)
    assert None not in wanted.values()
    cores = JOBS["tests", "core"]["strategy"]["matrix"]["include"]
    assert {tuple(map(int, core["python"].split("."))) for core in cores} <= set(versions)


def test_network_namespaces_are_tested_in_the_debian_that_was_tried():
    for job in (("tests", "netns"), ("nightly", "chaos"), ("nightly", "stress"), ("nightly", "timing")):
        assert JOBS[job]["container"] == {"image": "debian:12", "options": "--privileged"}
        assert JOBS[job]["steps"][0]["run"] == DEBIAN


def test_the_list_of_scenarios_is_made_without_installing_anything():
    assert not [step for step in JOBS["pull", "changes"]["steps"] if step.get("uses", "").startswith("./")]
    assert "setup" not in RECIPES["scenarios"].partition("##")[0]
