# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By which commands units come to run with their files, or stop."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.write import units
from ansible_collections.onprem.lb.plugins.module_utils._host.write.units import Found, Wanted
from support.programs import Programs

UNIT = "onprem-lb-watch.service"
FILE, CONFIG = f"/etc/systemd/system/{UNIT}", "/etc/watch.json"
RUNS = Found("active", enabled=True)


def starts(found, *changed, **wanted):
    commands = units.starts([Wanted(UNIT, **wanted)], {UNIT: found}, {UNIT: changed})
    return [" ".join(command[1:]) for command in commands]


@pytest.mark.parametrize(
    "found, changed, expected",
    [
        (Found(), [FILE], [f"enable {UNIT}", f"restart {UNIT}"]),
        (RUNS, [FILE], [f"restart {UNIT}"]),
        (RUNS, [CONFIG], [f"restart {UNIT}"]),
        (Found("inactive", enabled=True), [], [f"restart {UNIT}"]),
        (Found("failed", enabled=True), [], [f"restart {UNIT}"]),
        (Found("activating", enabled=True), [], [f"restart {UNIT}"]),
        (Found("active"), [], [f"enable {UNIT}"]),
        (RUNS, [], []),
        (Found("reloading", enabled=True), [], []),
    ],
)
def test_it_runs_with_its_files(found, changed, expected):
    assert starts(found, *changed) == expected


@pytest.mark.parametrize(
    "found, changed, expected",
    [
        (RUNS, [CONFIG], [f"reload {UNIT}"]),
        (RUNS, [FILE], [f"restart {UNIT}"]),
        (RUNS, [CONFIG, FILE], [f"restart {UNIT}"]),
        (Found("inactive", enabled=True), [CONFIG], [f"restart {UNIT}"]),
        (RUNS, [], []),
    ],
)
def test_what_is_reloaded_for_its_configuration_is_restarted_for_its_unit(found, changed, expected):
    assert starts(found, *changed, on_change="reloaded") == expected


def test_what_a_change_leaves_as_it_is_only_starts_and_nobody_waits_for_it():
    assert starts(RUNS, FILE, on_change="unchanged") == []
    assert starts(Found(), FILE, on_change="unchanged", wait=False) == [f"enable {UNIT}", f"start --no-block {UNIT}"]


@pytest.mark.parametrize(
    "found, expected",
    [
        (RUNS, [f"disable {UNIT}", f"stop {UNIT}"]),
        (Found("active"), [f"stop {UNIT}"]),
        (Found("activating"), [f"stop {UNIT}"]),
        (Found("inactive", enabled=True), [f"disable {UNIT}"]),
        (Found("failed"), [f"reset-failed {UNIT}"]),
        (Found(), []),
    ],
)
def test_it_stops_for_good(found, expected):
    wanted = [Wanted(UNIT, state="stopped")]
    assert [" ".join(command[1:]) for command in units.stops(wanted, {UNIT: found})] == expected
    assert units.starts(wanted, {UNIT: found}, {UNIT: [FILE]}) == []


def test_each_unit_is_read_once_and_one_that_does_not_exist_is_inactive():
    shown = "Id=a.service\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=yes\n\n"
    programs = Programs({"systemctl": f"{shown}Id=b.path\nActiveState=inactive\nUnitFileState=\nNeedDaemonReload=no\n"})
    assert units.read(programs.run, ["a.service", "b.path"]) == {
        "a.service": Found("active", enabled=True, outdated=True),
        "b.path": Found(),
    }
    assert len(programs.ran) == 1
    assert units.read(programs.run, []) == {} and len(programs.ran) == 1


def test_where_systemd_does_not_run_nothing_does():
    programs = Programs({"systemctl": (1, "", "System has not been booted with systemd as init system.\n")})
    assert units.read(programs.run, ["a.service", "b.path"]) == {"a.service": Found(), "b.path": Found()}


def test_a_unit_that_does_not_start_says_why_in_its_own_words():
    logged = f"Started {UNIT}.\nthe port is taken\n{UNIT}: Main process exited\n"
    programs = Programs({"systemctl": (1, "", f"Job for {UNIT} failed.\n"), "journalctl": logged})
    with pytest.raises(units.Failed) as failed:
        units.take(programs.run, [["systemctl", "restart", UNIT], ["systemctl", "start", "another.service"]])
    assert str(failed.value) == f"`systemctl restart {UNIT}` failed: the port is taken"
    assert [line for line in programs.ran if "another" in line] == []
    silent = Programs({"systemctl": (1, "", f"Unit {UNIT} is masked.\n"), "journalctl": ""})
    with pytest.raises(units.Failed, match=f"failed: Unit {UNIT} is masked."):
        units.take(silent.run, [["systemctl", "restart", UNIT]])
