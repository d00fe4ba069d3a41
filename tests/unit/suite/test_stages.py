# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each scope runs, and what a machine's lack of rights makes of it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from suite.stages import GROUPS, NO_RIGHTS, QUICK_RUNS, Here, for_group, read_runs
from support.paths import ROOT
from support.scenarios import EVERY

HERE = Here(full=False, privilege="root", lab_refusal="", programs=Path("bin"), python="python3", logs=Path("logs"))


def names(group, where=HERE):
    return [stage.name for stage in for_group(group, where)]


def stage(group, name, where=HERE):
    return next(stage for stage in for_group(group, where) if stage.name == name)


def here(**changes):
    return dataclasses.replace(HERE, **changes)


@pytest.mark.parametrize("full", [False, True])
def test_each_stage_comes_once_and_waits_for_none_that_is_never_there(full):
    found = for_group("test", here(full=full))
    assert len({one.name for one in found}) == len(found)
    every = {one.name for one in for_group("test", here(full=True, privilege="sudo"))}
    assert {name for one in found for name in one.after} <= every
    assert {name for one in found for name in one.needs} <= {one.name for one in found}


def test_the_full_scope_has_every_scenario_on_every_image():
    assert set(QUICK_RUNS) < set(EVERY) < set(names("test", here(full=True)))


def test_the_full_scope_has_the_slow_gates_and_the_million():
    assert {"sanity", "ansible-lint", "docs", "simulate", "fuzz"} <= set(names("test", here(full=True)))
    assert set(names("test")) < set(names("test", here(full=True)))


def test_chosen_scenarios_replace_those_of_the_scope():
    assert names("molecule", here(runs=("mixed:debian13",))) == [
        "setup",
        "packages",
        "images",
        "mixed:debian13",
        "leftovers",
    ]


def test_what_measures_time_runs_alone_and_after_all_that_works():
    timed = stage("test", "netns-timed", here(full=True))
    assert timed.alone
    assert {"unit", "netns", "pythons", "lint", "sanity", "images"} <= set(timed.after)
    for run in QUICK_RUNS:
        assert "netns-timed" in stage("test", run).after


def marks(found):
    """Return what the stages' pytest chooses by, of those that test this folder."""
    return [one.command[one.command.index("-m") + 1] if "-m" in one.command else "" for one in found]


def test_the_two_stages_of_netns_leave_no_test_out():
    assert marks(for_group("netns", HERE)[2:]) == ["not timed", "timed"]


@pytest.mark.parametrize(("privilege", "first"), [("root", "env"), ("sudo", "sudo"), ("none", "env")])
def test_netns_runs_itself_through_sudo_where_it_must(privilege, first):
    assert {one.command[0] for one in for_group("netns", here(privilege=privilege))[2:]} == {first}


def test_what_only_root_can_run_is_run_as_root_too():
    assert marks(for_group("unit", HERE)[2:]) == [""]
    plain, as_root = for_group("unit", here(privilege="sudo"))[2:]
    assert marks([plain, as_root]) == ["not root", "root"]
    assert as_root.command[0] == "sudo"
    assert stage("unit", "unit-as-root", here(privilege="none")).missing == NO_RIGHTS


@pytest.mark.parametrize("text", ["default", "default:", "nonsense:debian12", "default:debian12 :debian13"])
def test_runs_that_are_no_scenario_on_an_image_are_refused_by_name(text):
    with pytest.raises(ValueError, match=f"RUNS has '{text.split()[-1]}': it takes SCENARIO:IMAGE"):
        read_runs(text)


def test_runs_may_be_images_of_registries_and_come_once():
    assert read_runs("") == ()
    wanted = "agent:quay.io/almalinuxorg/9-init:9"
    assert read_runs(f"{wanted} {wanted} default:debian12") == (wanted, "default:debian12")


def test_a_scenario_is_never_run_on_two_images_at_once():
    assert "default:debian12" in stage("test", "default:debian13", here(full=True)).after
    assert "default:debian12" not in stage("test", "mixed:debian12", here(full=True)).after


def test_no_two_scenarios_share_the_folder_that_molecule_empties():
    folders = {
        one.name.partition(":")[0]: one.environment["MOLECULE_EPHEMERAL_DIRECTORY"]
        for one in for_group("molecule", here(full=True))
        if one.counts == "molecule"
    }
    assert len(set(folders.values())) == len(folders) > 1


def test_without_rights_packages_and_scenarios_are_skipped_with_the_reason():
    refused = here(privilege="none", lab_refusal="become root")
    assert stage("test", "packages", refused).missing == NO_RIGHTS
    assert stage("test", "images", refused).missing == "become root"
    assert all("images" in stage("test", run, refused).needs for run in QUICK_RUNS)


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_is_a_target_of_make_and_each_gate_too(group):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert group in targets
    made = {one.command[-1] for one in for_group(group, here(full=True)) if one.command[0] == "make"}
    assert made <= targets
