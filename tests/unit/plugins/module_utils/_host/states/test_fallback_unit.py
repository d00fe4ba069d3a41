# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program runs wherever a switchover holds a member back, and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import (
    arming,
    fallback_unit,
    manager,
    program,
    restoring,
    snapshot,
    store,
    undo,
    undoing,
)
from support.states import CONFIGS, Systemd, native


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What is asked of systemd where these files are."""

    def begin(systemd, *there):
        for name in ("record", "program"):
            (tmp_path / name).unlink(missing_ok=True) if name not in there else (tmp_path / name).touch()
        monkeypatch.setitem(fallback_unit.PATHS, fallback_unit.SWITCHOVER, str(tmp_path / "record"))
        monkeypatch.setattr(fallback_unit, "PROGRAM", str(tmp_path / "program"))
        return fallback_unit.begin(systemd.run_command, CONFIGS), systemd.asked

    return begin


def test_it_runs_where_there_is_a_record_with_the_paths_that_it_reads(begun):
    failed, asked = begun(Systemd(), "record", "program")
    assert failed == [] and len(asked) == 1
    assert asked[0].startswith("systemd-run --unit=onprem-lb-fallback.service ") and asked[0].endswith(
        json.dumps(CONFIGS)
    )


def test_without_a_record_or_where_it_runs_already_nothing_is_asked(begun):
    assert begun(Systemd(), "program") == begun(Systemd(), "record") == ([], [])
    assert begun(Systemd(**{"onprem-lb-fallback": True}), "record", "program") == ([], [])


def test_what_fails_is_said(begun):
    systemd = Systemd()
    systemd.fails = {"systemd-run": "no"}
    (failed,) = begun(systemd, "record", "program")[0]
    assert failed.endswith("failed: no")


def test_a_return_that_brings_the_record_back_has_the_program_run_again(begun, monkeypatch):
    """By itself, or by a rollback: who is held back always has somebody who listens."""
    begun(Systemd())
    for path in ("record", "program"):
        open(fallback_unit.PROGRAM.replace("program", path), "w").close()
    now = native()
    monkeypatch.setattr(snapshot, "take", lambda *_given: now)
    monkeypatch.setattr(restoring, "openings", lambda *_given: [])
    monkeypatch.setattr(restoring, "current_openings", lambda *_given: [])
    monkeypatch.setattr(store, "load", lambda wanted: store.State(wanted, "a run", now))
    own, rolled_back = Systemd(), Systemd()
    due = arming.Due("20260131T120000Z", "20260131T120000Z", undoing.ALONE, 40, 5, arming.boot_id())
    undo.Undo(due, now, own, say=lambda _text: None).go(lambda: None)
    manager.restore(manager.Member(rolled_back.run_command, rolled_back, CONFIGS, []), due.id, dry=False)
    for systemd in (own, rolled_back):
        assert [line.split()[0] for line in systemd.asked] == ["systemd-run"]


def test_the_program_is_there_before_it_runs_and_what_hinders_it_is_a_sentence(begun, monkeypatch, tmp_path):
    begun(Systemd(), "record")
    systemd = Systemd()
    member = manager.Member(systemd.run_command, systemd, CONFIGS, [])
    manager.hold_back(member)
    assert systemd.asked[0].startswith("systemd-run") and (tmp_path / "program").stat().st_mode & 0o777 == 0o700
    systemd.fails = {"systemd-run": "no"}
    with pytest.raises(arming.Refused, match="failed: no"):
        manager.hold_back(member)


@pytest.mark.parametrize("name", ["undo", "fallback"])
def test_each_program_runs_by_itself(name, tmp_path):
    (tmp_path / "program.pyz").write_bytes(program.build(name))
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'program.pyz')!r}); from lb._host.states import {name}"
    assert subprocess.run([sys.executable, "-I", "-c", code], check=False).returncode == 0
