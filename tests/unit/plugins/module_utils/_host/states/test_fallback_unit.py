# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program runs wherever a switchover holds a member back, and nowhere else."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import fallback_unit
from support.states import CONFIGS, Systemd


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
