# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the API server says of nodes, and leaves out, there are as many servers as nodes that are there and ready.

The cluster's truth and what the API server says of it are two things here: a node that is there may be listed without
an address, with a VIP, with another node's address, without its label, or not at all in a list that breaks off.
"""

from __future__ import annotations

import random

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.membership import Known, Membership
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import MILLION, Nodes
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.watching import (
    Changed,
    Failed,
    Listed,
    Page,
    PageRequest,
    Removed,
    Watching,
    page_of,
)
from support.follow.nodes import LABEL, node

VIP, UNKNOWN_VIP = "10.0.0.200", "10.0.0.201"
ABOUT = Nodes(networks=("10.0.0.0/24",), vips=(VIP,), not_ready_for=60 * MILLION)
CHANGES = 1000


class Cluster:
    """The nodes as they are, and as the API server shows them."""

    def __init__(self, chance):
        self.chance = chance
        self.shown = {}  # by name: the document
        self.ready = {}  # by name: whether it is
        self.version = 1
        self.served = set()  # the nodes that were shown whole once
        for at in range(1, 6):
            self.join(at)

    def document(self, name, *addresses, ready=True, labels=(LABEL,)):
        self.version += 1
        self.shown[name] = node(name, *addresses, ready=ready, labels=labels, version=str(self.version))
        taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]
        self.shown[name]["spec"] = self.chance.choice([{}, {"unschedulable": True, "taints": taints}])
        self.ready[name] = ready
        return {"type": "MODIFIED", "object": self.shown[name]}

    @staticmethod
    def address(name):
        return f"10.0.0.{name[1:]}"

    def join(self, at):
        self.served.add(f"n{at}")
        return self.document(f"n{at}", f"10.0.0.{at}")

    def change(self):
        """Change a node, and return the event of that."""
        name = self.chance.choice(sorted(self.shown))
        others = [self.address(other) for other in sorted(self.shown) if other != name]
        own = self.address(name)
        return self.chance.choice(
            [
                lambda: self.document(name, own),
                lambda: self.document(name),
                lambda: self.document(name, VIP),
                lambda: self.document(name, UNKNOWN_VIP),
                lambda: self.document(name, "192.0.2.9", own),
                lambda: self.document(name, own, "192.0.2.9"),
                lambda: self.document(name, "fd00::9"),
                lambda: self.document(name, "127.0.0.1"),
                lambda: self.document(name, self.chance.choice([*others, VIP])),
                lambda: self.document(name, own, labels=()),
                lambda: self.document(name, labels=("worker",)),
                lambda: self.document(name, own, ready=False),
                lambda: self.document(name, ready=False),
                lambda: self.remove(name),
                lambda: self.join(self.chance.randrange(1, 9)),
                lambda: self.join(self.chance.randrange(1, 9)),
            ]
        )()

    def remove(self, name):
        if len(self.shown) == 1:
            return self.document(name, self.address(name))
        self.version += 1
        gone = self.shown.pop(name)
        self.served.discard(name)
        gone["metadata"]["resourceVersion"] = str(self.version)
        return {"type": "DELETED", "object": gone}

    def pages(self, of):
        """Return the list in pages of so many nodes."""
        items = [self.shown[name] for name in sorted(self.shown)]
        parts = [items[at : at + of] for at in range(0, len(items), of)]
        metadata = [{"resourceVersion": str(self.version), "continue": str(at)} for at in range(1, len(parts))]
        return [
            page_of({"kind": "NodeList", "metadata": about, "items": part})
            for about, part in zip([*metadata, {"resourceVersion": str(self.version)}], parts)
        ]

    def ready_ones(self):
        return {name for name in self.served if self.ready[name]}


def take(them, news, now):
    for each in news:
        if isinstance(each, Listed):
            them.replace(each.nodes, now)
        elif isinstance(each, Changed):
            them.change(each.node, now)
        elif isinstance(each, Removed):
            them.remove(each.name)


def listed(them, watching, cluster, now):
    """Have the whole list read; it may break off and be read anew."""
    pages = cluster.pages(cluster.chance.randrange(1, 5))
    if cluster.chance.random() < 0.5:
        for page in pages[: cluster.chance.randrange(len(pages))]:
            take(them, watching.after(page), now)
        take(them, watching.after(Failed("cut")), now)
        watching = Watching(1)
    assert isinstance(watching.request, PageRequest) and isinstance(pages[-1], Page)
    for page in pages:
        take(them, watching.after(page), now)
    return watching


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("is_asked", [True, False])
def test_there_are_never_fewer_servers_than_nodes_that_are_there_and_ready(seed, is_asked):
    def answering():
        """The balancer's checks, of a balancer that can be asked or that cannot."""
        return dict.fromkeys(map(cluster.address, cluster.shown), True) if is_asked else None

    chance = random.Random(seed)
    cluster, them, now = Cluster(chance), Membership(ABOUT, Known()), 0
    watching = listed(them, Watching(1), cluster, now)
    them.decide(now)
    for _change in range(CHANGES):
        now += chance.choice([1, MILLION, 61 * MILLION])
        event = cluster.change()
        if chance.random() < 0.02:  # it is started anew
            them = Membership(ABOUT, them.decide(now, answering))
            watching = listed(them, Watching(1), cluster, now)
        elif chance.random() < 0.1:  # the watch has missed it
            watching = listed(them, Watching(1), cluster, now)
        else:
            take(them, watching.line(event), now)
        servers = them.decide(now, answering).servers
        assert len(servers) >= max(1, len(cluster.ready_ones())), (event, servers, cluster.ready_ones())
        assert len({server.address for server in servers}) == len(servers)
        assert {VIP, "127.0.0.1"}.isdisjoint(server.address for server in servers)
