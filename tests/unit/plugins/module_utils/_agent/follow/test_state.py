# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last good list outlives a restart, and a file that is of no use does no harm."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import state
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.membership import Known
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Server

KNOWN = Known((Server("a", "10.0.0.1"), Server("b", "fd00::2")), (Server("c", "10.0.0.3"), Server("d", "")))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "folder" / "servers.json")


def test_what_is_saved_is_loaded(path):
    for known in ({"x=": KNOWN}, {"x=": KNOWN, "y=": Known((Server("w", "10.0.0.9"),))}):
        state.save(path, known)
        assert state.load(path) == (known, None)
    assert os.listdir(os.path.dirname(path)) == ["servers.json"]


def test_without_a_file_nothing_is_known(path):
    assert state.load(path) == ({}, None)


def test_a_file_of_an_earlier_version_is_read(path):
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"label": "x=", "servers": [{"name": "a", "address": "10.0.0.1"}], "unready": ["c"]}, file)
    assert state.load(path) == ({"x=": Known((Server("a", "10.0.0.1"),), (Server("c", ""),))}, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "7",
        "[]",
        '{"label": "x="}',
        json.dumps({"label": "x=", "servers": [{"name": "a", "address": "nonsense"}]}),
        json.dumps({"label": "x=", "servers": [{"name": "a b", "address": "10.0.0.1"}]}),
        json.dumps({"label": "x=", "servers": [], "unready": 7}),
        json.dumps({"label": "x=", "servers": [], "unready": [7]}),
        json.dumps({"label": "x=", "servers": [], "others": 7}),
        json.dumps({"label": "x=", "servers": [{"name": "a", "address": "10.0.0.1"}] * 2}),
    ],
)
def test_a_file_that_is_of_no_use_is_a_sentence_and_no_list(path, text):
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    known, sentence = state.load(path)
    assert known == {}
    assert sentence.startswith("The state_file cannot be used, and is rewritten: ")


def test_a_folder_that_cannot_be_had_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be written: "):
        state.save(str(tmp_path / "file" / "servers.json"), {"x=": KNOWN})
