# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The thread that watches, with stand-in API servers: what it gets round, and what ends the process."""

from __future__ import annotations

import ast
import contextlib

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import api as tested
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import selector, watching
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.follower import Follower
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.watching import (
    Interrupted,
    Listed,
    Silent,
    Trouble,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.loops import run_until
from support.follow.api_server import ApiServer
from support.follow.clusters import LABELS, masters
from support.follow.nodes import LABEL, node
from support.paths import MODULE_UTILS


class Following:
    """A follower in its thread, and what it has told the loop."""

    def __init__(self, api) -> None:
        self.loop, self.news = Loop(), []
        self.follower = Follower(self.loop, Settings(api), self.news.extend)
        self.follower.start()

    def with_label(self, label):
        """Return the nodes of the first list that a label selects."""
        wanted = selector.parse(label)
        return {each.name for each in self.news[0].nodes if wanted.matches(each.labels)}

    def names(self):
        """Return the names of the last list, and how many there were."""
        lists = [each for each in self.news if isinstance(each, Listed)]
        return {node.name for node in lists[-1].nodes} if lists else set(), len(lists)

    def until(self, condition):
        run_until(self.loop, condition)

    def troubles(self):
        return [each for each in self.news if isinstance(each, (Trouble, Interrupted))]


@pytest.fixture
def follow():
    with contextlib.ExitStack() as stack:

        def begin(api):
            found = Following(api)
            stack.callback(found.follower.stop)
            return found

        yield begin


def test_a_frozen_watch_is_left_for_the_next_api_server_and_its_list(server, certificate, api, follow, monkeypatch):
    with ApiServer(certificate) as second:
        server.put(*masters())
        second.put(*masters())
        it = follow(api._replace(servers=(server.url, second.url)))
        it.until(lambda: server.watches)
        second.put(node("m3", "10.0.0.4"))
        server.frozen = True
        monkeypatch.setattr(tested, "SILENT", 0.3)
        server.cut()  # the next one is frozen from the start, and knows the new limit
        it.until(lambda: "m3" in it.names()[0])
        assert Trouble(0, Silent()) in it.news and second.lists()


def test_a_watch_that_is_cut_when_it_is_idle_is_resumed_without_a_list_or_a_fault(server, api, follow, monkeypatch):
    monkeypatch.setattr(watching, "FLOOR", 0.0)
    server.put(*masters())
    server.idle_limit = 0.05
    it = follow(api)
    it.until(lambda: len(server.requests) > 10)
    assert len(server.lists()) == 1
    assert [type(each) for each in it.troubles()] == [Interrupted]


@pytest.mark.parametrize("waits", [False, True])
def test_after_a_restored_snapshot_the_nodes_are_those_of_the_snapshot(server, api, follow, monkeypatch, waits):
    monkeypatch.setattr(tested, "SILENT", 0.3)
    server.waits_for_versions = waits
    server.put(*masters())
    before = server.snapshot()
    server.remove("m2")
    server.put(*(node("m3", "10.0.0.4") for _change in range(9)))
    it = follow(api)
    it.until(lambda: it.names()[0] == {"m0", "m1", "m3"})
    server.restore(before)
    it.until(lambda: it.names()[0] == {"m0", "m1", "m2"})


@pytest.mark.parametrize("of", sorted(LABELS))
def test_the_nodes_of_each_kind_of_cluster_are_found_by_a_label_that_it_has(server, api, follow, of):
    server.put(*masters(of=of, networks=("10.0.0", "10.1.0")), node("worker", "10.0.0.9", labels=()))
    it = follow(api)
    it.until(lambda: it.names()[0] == {"m0", "m1", "m2", "worker"})
    assert it.with_label(LABELS[of][-1]) == {"m0", "m1", "m2"}


def test_a_label_that_is_no_text_is_none(server, api, follow):
    odd = node("odd", "10.0.0.9")
    odd["metadata"]["labels"] = {"role": {"a": 1}, LABEL: ["x"]}
    server.put(node("m0", "10.0.0.1", labels=("role",)), odd)
    it = follow(api)
    it.until(lambda: it.names()[0] == {"m0", "odd"})
    assert it.with_label("role in (,cp)") == {"m0"}


class Unknown(Exception):
    """A reason that nobody has thought of."""


def test_a_thread_that_ends_for_an_unknown_reason_ends_the_process(server, api, follow, monkeypatch):
    """Its watchdog sees the loop alone. systemd starts the process again."""
    server.put(*masters())
    it = follow(api)
    it.until(lambda: server.watches)

    def fail(*_arguments):
        raise Unknown

    monkeypatch.setattr(watching.Watching, "line", fail)
    server.put(node("m3", "10.0.0.4"))
    with pytest.raises(Unknown):
        it.until(lambda: False)


def test_no_other_program_of_the_agent_has_a_thread_that_its_watchdog_does_not_see():
    """Each of these follows the same rule: what ends it ends the process."""
    having = []
    for path in sorted((MODULE_UTILS / "_agent").rglob("*.py")):
        imported = [
            name
            for each in ast.walk(ast.parse(path.read_text()))
            for name in (
                [alias.name for alias in each.names]
                if isinstance(each, ast.Import)
                else [each.module or ""]
                if isinstance(each, ast.ImportFrom)
                else []
            )
        ]
        if {"threading", "_thread", "concurrent.futures", "multiprocessing"} & set(imported):
            having.append(path.name)
    assert having == ["follower.py", "relay.py"]
