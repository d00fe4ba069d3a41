# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of what HAProxy has loaded follows servers that were added without a reload, and nothing else."""

from __future__ import annotations

import hashlib

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.loaded import Loaded
from ansible_collections.onprem.lb.plugins.module_utils._host.read import in_force


def record(text):
    return f"{hashlib.sha256(text.encode()).hexdigest()}  /etc/haproxy/haproxy.cfg\n1234.56 999.00\n"


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "haproxy.loaded"
    found.write_text(record("old"))
    return found


def test_a_file_with_other_servers_counts_as_loaded_and_since_when_stays(path):
    loaded = Loaded(str(path))
    loaded.replacing("old")
    loaded.applied("new")
    assert path.read_text() == record("new")
    assert in_force.read_record(path.read_text()).uptime == 1234.56


def test_what_could_not_be_applied_at_first_is_recorded_when_it_is(path):
    loaded = Loaded(str(path))
    loaded.replacing("old")  # HAProxy did not answer
    loaded.replacing("newer")
    loaded.applied("newest")
    assert path.read_text() == record("newest")


@pytest.mark.parametrize("before", ["changed by hand", "new"])
def test_a_file_that_haproxy_has_not_loaded_stays_unrecorded(path, before):
    loaded = Loaded(str(path))
    loaded.replacing(before)
    loaded.applied("new")
    assert path.read_text() == record("old")


def test_a_file_that_a_run_has_had_loaded_meanwhile_stays_recorded(path):
    loaded = Loaded(str(path))
    loaded.replacing("old")
    path.write_text(record("a run's"))
    loaded.applied("new")
    assert path.read_text() == record("a run's")


@pytest.mark.parametrize("there", [False, True])
def test_without_a_record_nothing_is_written(tmp_path, there):
    loaded = Loaded(str(tmp_path / "none") if there else "")
    loaded.replacing("old")
    loaded.applied("new")
    assert list(tmp_path.iterdir()) == []
