# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of the API for ten minutes, on a fake clock: no server that lives is lost, what is new is seen soon."""

from __future__ import annotations

import math

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import watching
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.membership import Known, Membership
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Nodes
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.watching import (
    Changed,
    Ended,
    Failed,
    Listed,
    Page,
    PageRequest,
    Refused,
    Removed,
    Silent,
    Unusable,
    Wait,
    Waited,
    Watching,
    WatchRequest,
)
from support.follow import clusters, shapes
from support.follow.nodes import node

MINUTE = 60.0
BEGIN, END = 5 * MINUTE, 15 * MINUTE  # of the fault


class Cluster:
    """Three masters behind API servers, all of which have one fault for ten minutes."""

    def __init__(self, fault, of=None) -> None:
        self.now, self.fault, self.of = 0.0, fault, of  # of which API server; None: of all
        self.nodes = {each["metadata"]["name"]: each for each in clusters.masters()}
        self.changes, self.version = [], 100
        self.blind = []  # from when to when no watch was open

    def put(self, found):
        self.version += 1
        self.nodes[found["metadata"]["name"]] = found
        self.changes.append((self.now, self.version, found))

    def has_fault(self, server):
        return BEGIN <= self.now < END and self.of in (None, server)

    def page(self, server):
        if self.has_fault(server) and self.fault in LISTS:
            return LISTS[self.fault]
        return watching.page_of(shapes.a_list(self.version, list(self.nodes.values())))

    def watch(self, request, line):
        """Play a watch, to its end."""
        began, since = self.now, int(request.version)
        while True:
            fault = self.fault if self.has_fault(request.server) else None
            if fault in WATCHES:
                wait, outcome = WATCHES[fault]
                if self.now - began >= wait:
                    return outcome
            if fault != "it is silent":
                for _at, version, found in [each for each in self.changes if each[1] > since]:
                    line(shapes.event("MODIFIED", found, version))
                    since = version
                if (self.now - began) % MINUTE == 0:
                    line(shapes.bookmark(self.version))
            if self.now - began >= request.seconds:
                return Ended(self.now - began)
            self.tick()

    def tick(self, seconds=1.0):
        self.now += seconds
        for moment, found in list(self.planned):
            if self.now >= moment:
                self.planned.remove((moment, found))
                self.put(found)

    planned = ()


LISTS = {
    "it is away": Failed("connection refused"),
    "it hangs": Failed("no answer in time"),
    **{f"it answers {code}": Refused(code) for code in (400, 401, 403, 404, 410, 429, 500, 503, 504)},
    "it asks for a delay": Refused(429, retry_after=9999.0),
    "it has no nodes": Page([], "100", ""),
    "it has nonsense": Page([{"metadata": {"name": 7}}], "100", ""),
    "it has no version": Page([node("x", "10.9.9.9")], "", ""),
}
WATCHES = {
    **{name: (0, outcome) for name, outcome in LISTS.items() if not isinstance(outcome, Page)},
    "it has no nodes": (0, Refused(410)),
    "it has nonsense": (0, Failed("the answer is not JSON")),
    "it has no version": (0, Failed("a line of the watch is not an event")),
    "it cuts the watch at once": (0, Ended(0.0, "the connection was cut")),
    "it cuts an idle watch": (20, Ended(20.0, "the connection was cut")),
    "it ends the watch early": (20, Ended(20.0)),
    "it is silent": (120, Silent()),
}


def play(cluster, servers=1, until=25 * MINUTE):
    """Follow a cluster; return the names of the servers at each change."""
    it = Watching(servers, chance=lambda: 1.0, clock=lambda: cluster.now)
    members, history = Membership(Nodes(), Known()), []

    def take(news):
        for each in news:
            at = int(cluster.now * 1_000_000)
            if isinstance(each, Listed):
                members.replace(each.nodes, at)
            elif isinstance(each, Changed):
                members.change(each.node, at)
            elif isinstance(each, Removed):
                members.remove(each.name)
            else:
                continue
            history.append((cluster.now, {server.name for server in members.decide(at).servers}))

    while cluster.now < until:
        began = cluster.now
        if isinstance(it.request, Wait):
            for _second in range(math.ceil(it.request.seconds)):
                cluster.tick()
            take(it.after(Waited()))
            cluster.blind.append((began, cluster.now))
        elif isinstance(it.request, PageRequest):
            take(it.after(cluster.page(it.request.server)))
        else:
            assert isinstance(it.request, WatchRequest)
            try:
                outcome = cluster.watch(it.request, lambda line: take(it.line(line)))
            except Unusable as unusable:
                outcome = unusable.outcome
            take(it.after(outcome))
    return history


def seen(history, name):
    """Return when a node became a server."""
    return next(at for at, names in history if name in names)


FAULTS = sorted({*LISTS, *WATCHES})


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_all_api_servers_loses_no_server_and_is_over_soon(fault, servers):
    cluster = Cluster(fault)
    cluster.planned = [(8 * MINUTE, node("m3", "10.0.0.4"))]
    history = play(cluster, servers)
    assert all(names >= {"m0", "m1", "m2"} for _at, names in history), history
    assert seen(history, "m3") <= END + watching.LAST_DELAY + 1


@pytest.mark.parametrize("of", [0, 1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_of_three_api_servers_is_got_round(fault, of):
    """Only a silence takes until it is known to be one. A list without nodes is not followed."""
    cluster = Cluster(fault, of)
    cluster.planned = [(8 * MINUTE, node("m3", "10.0.0.4"))]
    history = play(cluster, 3)
    assert all(names >= {"m0", "m1", "m2"} for _at, names in history), history
    assert seen(history, "m3") <= 8 * MINUTE + (watching.SILENT if fault == "it is silent" else 0) + 1


@pytest.mark.parametrize("fault", ["it cuts an idle watch", "it ends the watch early"])
def test_behind_an_idle_limit_it_is_blind_for_two_seconds_of_a_minute_at_most(fault):
    cluster = Cluster(fault)
    play(cluster)
    for minute in range(int(BEGIN), int(END), int(MINUTE)):
        blind = (min(to, minute + MINUTE) - max(since, minute) for since, to in cluster.blind)
        assert sum(each for each in blind if each > 0) <= 2, cluster.blind


class Restored(Cluster):
    """One whose etcd is restored from a snapshot that has m0 and m1, and m9, which was deleted since."""

    def __init__(self, waits) -> None:
        super().__init__(None)
        self.version, self.waits = 5000, waits

    def watch(self, request, line):
        if int(request.version) <= self.version:
            return super().watch(request, line)
        if not self.waits:
            return watching.refusal(shapes.too_large(request.version, self.version), 504)
        self.tick(watching.SILENT)
        return Silent()

    def has_fault(self, server):
        return False

    def tick(self, seconds=1.0):
        before = self.now
        super().tick(seconds)
        if before < BEGIN <= self.now:
            self.version, self.changes = 120, []
            self.nodes = {name: self.nodes[name] for name in ("m0", "m1")}
            self.put(node("m9", "10.0.0.9"))


@pytest.mark.parametrize("waits", [False, True])
def test_after_etcd_was_restored_what_it_no_longer_has_leaves_and_what_it_has_again_comes(waits):
    """A watch from a version that does not exist yet is refused, or waits for it."""
    history = play(Restored(waits))
    assert history[0][1] == {"m0", "m1", "m2"} and history[-1][1] == {"m0", "m1", "m9"}
    assert seen(history, "m9") <= BEGIN + watching.SILENT + 1
