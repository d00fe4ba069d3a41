# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record that holds a host back: there, gone, damaged, unreadable."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import held_back
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast.gate import Record
from support.agent.loops import run_until

FULL = {"to": "lb2", "since": "2026-11-29 22:00", "by": "anna"}
HELD = Record("held back since 2026-11-29 22:00 by anna")


@pytest.fixture
def watched(loop, tmp_path, no_leak):
    folders = [tmp_path / "run", tmp_path / "lib"]
    for folder in folders:
        folder.mkdir()
    changed = []
    found = held_back.HeldBack(loop, lambda: changed.append(found.record))
    found.changed, found.files = changed, [folder / "record.json" for folder in folders]
    found.use([str(file) for file in found.files])
    yield found
    found.use([])


@pytest.mark.parametrize("which", [0, 1])
def test_a_record_counts_at_once_and_so_does_its_end(loop, watched, which, monkeypatch):
    monkeypatch.setattr(held_back, "AGAIN", 1 << 40)
    assert watched.record == Record()
    watched.files[which].write_text(json.dumps(FULL))
    run_until(loop, lambda: watched.record == HELD)
    watched.files[which].unlink()
    run_until(loop, lambda: watched.record == Record())
    assert watched.changed == [HELD, Record()]


def test_a_record_that_was_there_before_is_known_at_once(watched):
    watched.files[0].write_text(json.dumps(FULL))
    watched.use([str(watched.files[1])])
    assert watched.record == Record()
    watched.use([str(file) for file in watched.files])
    assert watched.record == HELD


def test_one_of_two_records_is_enough(loop, watched):
    for file in watched.files:
        file.write_text(json.dumps(FULL))
    run_until(loop, lambda: watched.record.text.count("anna") == 2)
    watched.files[0].unlink()
    run_until(loop, lambda: watched.record == HELD)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "7", "null", "[" * 100_000, "\x00\xff"])
def test_a_damaged_record_is_none_as_for_the_others_who_read_it(tmp_path, text):
    file = tmp_path / "record.json"
    file.write_text(text, encoding="latin-1")
    assert held_back.look(str(file)) == (True, "", 0, 0, True)


def test_what_is_not_there_is_no_record_and_what_cannot_be_read_is_not_known(tmp_path, watched):
    (tmp_path / "file").write_text("")
    for path in ("none", "none/none", "file/none"):
        assert held_back.look(str(tmp_path / path)) == (True, "", 0, 0, True)
    unreadable = held_back.look(str(tmp_path))
    assert not unreadable.known and unreadable.detail == f"{tmp_path} cannot be read: is a directory"
    watched.use([str(tmp_path)])
    assert watched.record == Record(known=False)


def test_a_record_without_details_holds_a_host_back_too(tmp_path):
    file = tmp_path / "record.json"
    file.write_text('{"to": "lb2"}')
    assert held_back.look(str(file))[:2] == (False, "held back")
