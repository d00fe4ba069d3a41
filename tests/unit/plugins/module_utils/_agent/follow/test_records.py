# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At a start the newest record wins, whichever file it is in."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import records, state
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.membership import Known
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import (
    Api,
    Haproxy,
    Nodes,
    Proxy,
    Server,
    Settings,
    Target,
)

OLD, NEW = 1000, 2000
A, B = Server("a", "10.0.0.1"), Server("b", "10.0.0.2")
LABEL = Nodes().label
UNREADY = (Server("c", "10.0.0.9"),)
KNOWN = Known((A, B), UNREADY)
HAPROXY = "backend web\n  server first 10.0.0.1:6443\n  server x 10.0.0.3:6443\n"
PROXY = json.dumps({"services": [{"name": "web", "servers": [{"name": "x", "address": "10.0.0.3", "port": 6443}]}]})


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)


class Case:
    def __init__(self, folder) -> None:
        self.state, self.haproxy, self.proxy = folder / "state", folder / "haproxy.cfg", folder / "proxy.json"
        self.settings = Settings(
            Api(("https://x",)),
            haproxy=Haproxy((Target("web"),), str(self.haproxy)),
            proxy=Proxy((Target("web"),), str(self.proxy)),
            state_file=str(self.state),
        )
        state.save(str(self.state), {LABEL: KNOWN})
        self.at(self.state, NEW)

    def at(self, path, moment, text=None):
        if text is not None:
            path.write_text(text)
        os.utime(path, (moment, moment))

    def newest(self, known=KNOWN):
        return records.newest(self.settings, {LABEL: known})[LABEL]


def test_the_state_file_counts_if_it_is_the_newest_or_the_only_one(case):
    assert case.newest() == KNOWN
    case.at(case.haproxy, OLD, HAPROXY)
    case.at(case.proxy, OLD, PROXY)
    assert case.newest() == KNOWN


def test_the_servers_of_a_newer_file_count_with_the_names_of_the_nodes(case):
    case.at(case.haproxy, NEW + 1, HAPROXY)
    assert case.newest() == Known((A, Server("x", "10.0.0.3")), UNREADY)
    case.at(case.proxy, NEW + 2, PROXY)
    assert case.newest() == Known((Server("x", "10.0.0.3"),), UNREADY)


def test_a_file_with_the_same_servers_or_of_no_use_changes_nothing(case):
    same = "backend web\n  server first 10.0.0.2:6443\n  server x 10.0.0.1:6443\n"
    for text in (same, "", "backend web\n", 'backend "web\n', "backend web\n  server a :::1:5\n"):
        case.at(case.haproxy, NEW + 1, text)
        assert case.newest() == KNOWN, text
    for text in ("", "7", "{}", PROXY.replace("10.0.0.3", "a.example"), '{"services": [{"name": "web"}]}'):
        case.at(case.proxy, NEW + 1, text)
        assert case.newest() == KNOWN, text


def test_while_nothing_is_known_the_files_stay_as_they_are(case):
    case.at(case.haproxy, NEW + 1, HAPROXY)
    assert case.newest(Known()) == Known()
