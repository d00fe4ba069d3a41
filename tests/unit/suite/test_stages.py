# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages of each scope, and what changes without root."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import stress
from interruptions.operations import LAYOUTS
from suite.stages import GROUPS, NO_RIGHTS, PLAYED, QUICK_RUNS, Request, for_group, read_runs
from support.paths import ROOT
from support.scenarios import EVERY, IMAGE_OF, IMAGES, ON_RPM, RPM

REQUEST = Request(
    full=False,
    privilege="root",
    lab_refusal="",
    programs=Path("bin"),
    python="python3",
    logs=Path("logs"),
    has_oldest=True,
)


def names(group, where=REQUEST):
    return [stage.name for stage in for_group(group, where)]


def stage(group, name, where=REQUEST):
    return next(stage for stage in for_group(group, where) if stage.name == name)


def request(**changes):
    return dataclasses.replace(REQUEST, **changes)


def test_what_has_changed_is_judged_by_every_gate_in_the_quick_scope():
    judged = [one.command[-2:] for one in for_group("test", REQUEST) if one.command[-1] == "SINCE=main"]
    assert judged == [("sanity", "SINCE=main"), ("ansible-lint", "SINCE=main")]
    assert not [one for one in for_group("test", request(full=True)) if one.command[-1] == "SINCE=main"]


def test_chosen_runs_may_be_scenarios_and_killed_ones():
    runs = read_runs("default:debian12 interruptions:pair:change")
    assert names("molecule", request(runs=runs))[3:] == ["default:debian12", "interruptions:pair:change", "leftovers"]
    assert names("interruptions", request(runs=runs))[3:] == ["interruptions:pair:change"]
    assert names("molecule", request(runs=runs[1:]))[2:] == ["images", "interruptions:pair:change"]


@pytest.mark.parametrize("full", [False, True])
def test_what_tests_import_is_compiled_before_workers_begin_together(full):
    folders = [name for name in stage("test", "compiled", request(full=full)).command if name.startswith("tests/")]
    workers = [one for one in for_group("test", request(full=full)) if "--numprocesses" in one.command]
    assert {name for one in workers for name in one.command if name.startswith("tests/")} == {*folders}
    assert all("compiled" in one.after for one in workers)


@pytest.mark.parametrize("full", [False, True])
def test_each_stage_occurs_once_and_waits_only_for_existing_ones(full):
    found = for_group("test", request(full=full))
    assert len({one.name for one in found}) == len(found)
    every = {one.name for one in for_group("test", request(full=True, privilege="sudo"))}
    assert {name for one in found for name in one.after} <= every
    assert {name for one in found for name in one.needs} <= {one.name for one in found}


def test_the_full_scope_has_every_scenario_on_every_image():
    assert set(QUICK_RUNS) < set(EVERY) < set(names("test", request(full=True)))


def test_the_full_scope_has_the_slow_checks_and_the_random_tests():
    assert {"sanity", "ansible-lint", "docs", "simulate", "fuzz"} <= set(names("test", request(full=True)))
    assert set(names("test")) - {"playbooks"} < set(names("test", request(full=True)))


def killed(group, where):
    return [one for one in for_group(group, where) if one.name.startswith("interruptions")]


@pytest.mark.parametrize("group", ["test", "interruptions"])
def test_runs_of_each_cycle_are_killed_in_the_full_scope(group):
    full = killed(group, request(full=True))
    assert {one.command[2:4] for one in full} == {(name, each) for name in LAYOUTS for each in LAYOUTS[name].cycles()}
    assert full[1].after[-1] == full[0].name and full[-1].after[-1] != full[0].name


def test_runs_are_killed_at_every_moment_by_themselves_at_one_in_the_matrix_and_never_in_the_quick_test():
    assert not killed("test", REQUEST)
    assert {one.command[4:6] for one in killed("test", request(full=True))} == {("--moments", "1")}
    assert not [one for one in killed("interruptions", request(full=True)) if "--moments" in one.command]
    chosen = request(full=True, runs=("interruptions:ipi:change",))
    assert [one.command[2:5] for one in killed("molecule", chosen)] == [("ipi", "change", "--logs")]


def test_the_matrix_plays_each_scenario_in_full_on_one_image_and_in_quick_on_the_others():
    scopes = {run: stage("test", run, request(full=True)).environment["SCOPE"] for run in EVERY}
    for name, image in IMAGE_OF.items():
        images = (*IMAGES, RPM) if name in ON_RPM else IMAGES
        assert {run: scope for run, scope in scopes.items() if run.startswith(name + ":")} == {
            f"{name}:{each}": "full" if each == image else "quick" for each in images
        }
    assert [scopes[run] for run in EVERY] == sorted(scopes.values())  # what finds most comes first
    for scope, full in (("quick", False), ("full", True)):
        chosen = request(full=full, runs=EVERY)
        assert {stage("molecule", run, chosen).environment["SCOPE"] for run in EVERY} == {scope}


def test_by_themselves_six_runs_are_killed_in_the_quick_scope():
    quick = [one.command for one in for_group("interruptions", REQUEST) if one.name.startswith("interruptions")]
    assert [command[2:6] for command in quick] == [
        ("pair", cycle, "--moments", "1") for cycle in ("deployment", "change", "engine")
    ]


def test_the_archive_is_installed_beside_other_cores_in_the_full_scope_or_by_itself():
    assert "cores" not in names("test")
    assert "cores" in names("test", request(full=True)) and names("cores")[-1] == "cores"


def test_each_setting_of_a_controller_is_played_on_hosts_in_the_full_scope_or_by_itself():
    assert "controllers" not in names("test")
    assert names("controllers") == ["setup", "packages", "images", "controllers"]
    assert "timing" in stage("test", "controllers", request(full=True)).after


def test_chosen_scenarios_replace_those_of_the_scope():
    assert names("molecule", request(runs=("mixed:debian13",))) == [
        "setup",
        "packages",
        "images",
        "mixed:debian13",
        "leftovers",
    ]


def test_only_the_full_scope_measures_time_alone_and_after_what_computes():
    assert not [one.name for one in for_group("test", REQUEST) if one.alone]
    timing = stage("test", "timing", request(full=True))
    assert timing.alone
    assert {"unit", "netns", "pythons", "lint", "sanity", "images"} <= set(timing.after)
    for run in QUICK_RUNS:
        assert "timing" in stage("test", run, request(full=True)).after


def test_the_quick_scope_begins_with_long_stages_and_ends_with_short_ones():
    ordered = names("test")
    longest = [ordered.index(name) for name in (*QUICK_RUNS, "unit", "playbooks")]
    assert max(longest) < min(ordered.index(name) for name in ("netns", "lint", "sanity"))
    assert ordered[-6:] == ["netns", "pythons", "sanity", "ansible-lint", "lint", "build"]


def marks(found):
    """Return the mark expression of each pytest stage for this folder."""
    return [one.command[one.command.index("-m") + 1] if "-m" in one.command else "" for one in found]


@pytest.mark.parametrize("group", ["netns", "timing", "stressed"])
def test_no_test_is_left_out(group):
    assert set(marks(for_group(group, REQUEST)[2:])) == {""}


@pytest.mark.parametrize(("privilege", "first"), [("root", "env"), ("sudo", "sudo"), ("none", "env")])
def test_netns_runs_through_sudo_without_root(privilege, first):
    assert {one.command[0] for one in for_group("netns", request(privilege=privilege))[2:]} == {first}


def test_each_unit_test_runs_once_in_the_quick_scope_and_under_ours_too_in_the_full_one_or_without_the_oldest():
    full = request(full=True)
    assert "--controller-only" in stage("test", "unit").command
    assert PLAYED in stage("test", "playbooks").command and f"--ignore={PLAYED}" in stage("test", "unit").command
    every = [
        stage("test", "unit", full),
        stage("test", "compiled", full),
        stage("unit", "unit"),
        stage("stressed", "unit"),
        stage("test", "unit", request(has_oldest=False)),
    ]
    for one in every:
        assert "--controller-only" not in one.command


def test_tests_for_root_run_as_root_too():
    assert marks(for_group("unit", REQUEST)[2:]) == [""]
    plain, as_root = for_group("unit", request(privilege="sudo"))[2:]
    assert marks([plain, as_root]) == ["not root", "root"]
    assert as_root.command[0] == "sudo"
    assert stage("unit", "unit-as-root", request(privilege="none")).missing == NO_RIGHTS


@pytest.mark.parametrize("text", ["default", "default:", "nonsense:debian12", "default:debian12 :debian13"])
def test_an_invalid_run_is_refused_by_its_name(text):
    with pytest.raises(ValueError, match=f"RUNS has '{text.split()[-1]}': it takes SCENARIO:IMAGE"):
        read_runs(text)


def test_runs_may_be_images_of_registries_and_come_once():
    assert read_runs("") == ()
    wanted = "agent:quay.io/almalinuxorg/9-init:9"
    assert read_runs(f"{wanted} {wanted} default:debian12") == (wanted, "default:debian12")


def test_a_scenario_is_never_run_on_two_images_at_once():
    assert "default:debian12" in stage("test", "default:debian13", request(full=True)).after
    assert "default:debian12" not in stage("test", "mixed:debian12", request(full=True)).after


def test_no_two_scenarios_share_the_folder_that_molecule_empties():
    folders = {
        one.name.partition(":")[0]: one.environment["MOLECULE_EPHEMERAL_DIRECTORY"]
        for one in for_group("molecule", request(full=True))
        if one.counts == "molecule"
    }
    assert len(set(folders.values())) == len(folders) > 1


def test_without_rights_packages_and_scenarios_are_skipped_with_the_reason():
    refused = request(privilege="none", lab_refusal="become root")
    assert stage("test", "packages", refused).missing == NO_RIGHTS
    assert stage("test", "images", refused).missing == "become root"
    assert all("images" in stage("test", run, refused).needs for run in QUICK_RUNS)


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_and_each_check_is_a_make_target(group):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert group in targets or group == stress.GROUP
    made = {one.command[-1] for one in for_group(group, request(full=True)) if one.command[0] == "make"}
    assert made <= targets
