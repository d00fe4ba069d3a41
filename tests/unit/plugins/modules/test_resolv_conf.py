# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module resolv_conf: what it says, and what check mode leaves alone. How it replaces: _host/test_resolv_conf."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.modules import resolv_conf
from support.modules import refusal, run

OURS = "# Managed by Ansible, onprem.lb.resolver.\nnameserver 192.0.2.11\n"
THEIRS = "nameserver 192.0.2.1\n"


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "resolv.conf"
    found.write_text(THEIRS)
    return found


def test_it_is_replaced_once_and_brought_back_once(path):
    given = {"path": str(path), "content": OURS}
    assert run(resolv_conf, given)["diff"] == {"before": THEIRS, "after": OURS}
    again = run(resolv_conf, given)
    assert (again["changed"], again["kept"]) == (False, f"{path}.before-onprem-lb")
    gone = {"path": str(path), "state": "absent"}
    assert run(resolv_conf, gone)["diff"] == {"before": OURS, "after": THEIRS}
    assert run(resolv_conf, gone)["changed"] is False
    assert path.read_text() == THEIRS


def test_it_is_kept_for_the_resolver_before_it_is_replaced(path):
    given = {"path": str(path), "state": "kept"}
    assert run(resolv_conf, given)["changed"] is True
    assert path.read_text() == THEIRS == (path.parent / "resolv.conf.before-onprem-lb").read_text()
    assert run(resolv_conf, given)["changed"] is False
    assert run(resolv_conf, {"path": str(path), "content": OURS})["changed"] is True
    assert run(resolv_conf, given)["changed"] is False
    path.write_text("nameserver 192.0.2.9\n")
    assert run(resolv_conf, {**given, "supersede": True})["changed"] is True
    assert run(resolv_conf, {"path": str(path), "state": "absent", "supersede": True})["changed"] is False
    assert [each.name for each in path.parent.iterdir()] == ["resolv.conf"]


@pytest.mark.parametrize("state", ["present", "kept", "absent"])
def test_check_mode_says_the_same_and_changes_nothing(path, state):
    if state == "absent":
        run(resolv_conf, {"path": str(path), "content": OURS})
    before = {name: (path.parent / name).read_text() for name in os.listdir(path.parent)}
    given = {"path": str(path), "content": OURS, "state": state}
    said = run(resolv_conf, given, check=True)
    assert {name: (path.parent / name).read_text() for name in os.listdir(path.parent)} == before
    done = run(resolv_conf, given)
    assert said["changed"] is done["changed"] is True and said["diff"] == done["diff"]


def test_one_of_others_stays_and_the_run_says_so(path):
    run(resolv_conf, {"path": str(path), "content": OURS})
    path.write_text("nameserver 192.0.2.9\n")
    said = run(resolv_conf, {"path": str(path), "state": "absent"})
    assert (said["changed"], len(said["warnings"])) == (False, 1)
    assert said["warnings"][0].startswith(
        f"{path} was not written by this collection, so {path}.before-onprem-lb stays"
    )


def test_what_cannot_be_replaced_is_one_sentence(tmp_path):
    folder = tmp_path / "resolv.conf"
    folder.mkdir()
    said = refusal(resolv_conf, {"path": str(folder), "content": OURS})
    assert said == f"{folder} cannot be replaced: Is a directory."
