# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module agent_archive: the agent in one file, written only where it differs."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.modules import agent_archive
from support.modules import refusal, run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lib" / "agent.pyz"


def test_it_is_written_once_and_its_python_runs_it(path):
    wanted = {"path": str(path)}
    assert run(agent_archive, wanted, check=True)["changed"] and not path.exists()
    done = run(agent_archive, wanted)
    assert done["changed"] and list(path.parent.iterdir()) == [path]
    assert not run(agent_archive, wanted)["changed"]
    said = subprocess.run([done["python"], str(path), "metrics", "--help"], check=True, capture_output=True, text=True)
    assert "--certificate" in said.stdout


def test_another_version_is_replaced(path):
    path.parent.mkdir()
    path.write_bytes(b"of before")
    assert run(agent_archive, {"path": str(path)})["changed"]
    assert path.read_bytes().startswith(b"#!/usr/bin/env python3")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "lib").write_text("a file")
    assert refusal(agent_archive, {"path": f"{tmp_path}/lib/agent.pyz"}) == (
        f"{tmp_path}/lib/agent.pyz cannot be written: Not a directory."
    )
