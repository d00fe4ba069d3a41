# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who says that a host needs a reboot."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import reboot
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.programs import Programs

RUNNING = "6.1.0-9-amd64"


def reason(folder, monkeypatch, programs=None):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=RUNNING))
    given = Programs(programs or {})
    return reboot.reason(Reader(given.run, given.find), str(folder / "reboot-required"), str(folder / "modules"))


def test_the_flag_of_debian_says_so(tmp_path, monkeypatch):
    assert reason(tmp_path, monkeypatch) == ""
    (tmp_path / "reboot-required").touch()
    assert reason(tmp_path, monkeypatch) == f"{tmp_path}/reboot-required is there"


@pytest.mark.parametrize("code, said", [(1, "needs-restarting -r says so"), (0, ""), (2, "")])
def test_dnf_says_so(tmp_path, monkeypatch, code, said):
    assert reason(tmp_path, monkeypatch, {"needs-restarting": (code, "", "")}) == said


@pytest.mark.parametrize(
    "installed, newest",
    [
        ([RUNNING], ""),
        ([RUNNING, "6.1.0-8-amd64"], ""),
        ([RUNNING, "6.1.0-10-amd64"], "6.1.0-10-amd64"),
        ([RUNNING, "6.1.0-10-rt-amd64"], ""),
    ],
    ids=["same", "older", "newer", "another kind"],
)
def test_a_newer_kernel_of_the_kind_that_runs_says_so(tmp_path, monkeypatch, installed, newest):
    for name in installed:
        (tmp_path / "modules" / name).mkdir(parents=True)
    assert reason(tmp_path, monkeypatch) == (f"it runs Linux {RUNNING}, and {newest} is installed" if newest else "")
