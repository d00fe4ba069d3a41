# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are servers, as events come and time passes."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.membership import Known, Membership
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.nodes import Node
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import MILLION, Nodes, Server

A, B, C = (Server(name, f"10.0.0.{at}") for at, name in enumerate("abc", 1))
NOTHING = Known()
LIMIT = 60 * MILLION


def up(server, address=""):
    return Node(server.name, (address or server.address,), (), True)


def unready(server):
    return up(server)._replace(ready=False)


def members(*listed, known=NOTHING):
    found = Membership(Nodes(), known)
    found.replace(listed, 0)
    return found


def test_a_node_that_joins_is_a_server_at_once_ready_or_not():
    them = members(up(A))
    them.change(unready(B), 5)
    assert them.decide(5).servers == (A, B)


def test_a_node_that_leaves_is_none():
    them = members(up(A), up(B))
    them.remove("b")
    assert them.decide(5).servers == (A,)


def test_a_node_goes_once_it_was_not_ready_for_long_and_comes_back_when_it_is():
    them = members(up(A), up(B))
    them.change(unready(B), 7)
    assert them.due() == 7 + LIMIT
    assert them.decide(6 + LIMIT).servers == (A, B)
    assert them.decide(7 + LIMIT) == Known((A,), ("b",))
    assert them.due() is None
    them.change(up(B), 8 + LIMIT)
    assert them.decide(8 + LIMIT) == Known((A, B), ())


def test_more_events_of_a_node_that_is_not_ready_do_not_prolong_its_time():
    them = members(up(A), up(B))
    them.change(unready(B), 7)
    them.change(unready(B), LIMIT)
    them.replace([up(A), unready(B)], LIMIT)
    assert them.decide(7 + LIMIT).servers == (A,)


def test_a_short_absence_of_readiness_changes_nothing():
    them = members(up(A), up(B))
    them.change(unready(B), 7)
    them.change(up(B), LIMIT)
    assert them.decide(100 * LIMIT).servers == (A, B)


def test_the_list_never_becomes_empty_and_says_why():
    them = members(up(A), up(B))
    them.decide(0)
    them.remove("a")
    assert them.decide(1).servers == (B,)
    them.remove("b")
    assert them.decide(2).servers == (B,)
    assert them.problem().startswith("no node has the label node-role.kubernetes.io/control-plane")
    them.change(up(C), 3)
    assert them.decide(3).servers == (C,) and them.problem() is None


def test_the_last_node_stays_although_it_is_not_ready():
    them = members(up(A), unready(B))
    assert them.decide(LIMIT).servers == (A,)
    them.remove("a")
    assert them.decide(LIMIT).servers == (A,)
    assert them.problem() == "no node is ready: see `kubectl get nodes`."


def test_while_most_nodes_are_not_ready_none_leaves_for_that():
    them = members(up(A), up(B), up(C))
    for at, server in enumerate((A, B, C)):
        them.change(unready(server), at * MILLION)
    assert them.decide(2 * LIMIT).servers == (A, B, C) and them.due() is None
    assert them.problem() == "3 of 3 nodes are not ready, and none is removed for that: see `kubectl get nodes`."
    them.change(up(A), 2 * LIMIT)
    assert them.decide(2 * LIMIT).servers == (A, B, C) and them.due() is None
    them.change(up(B), 2 * LIMIT)
    assert them.due() is not None
    assert them.decide(2 * LIMIT).servers == (A, B) and them.problem() is None


def test_nodes_of_the_wrong_family_change_nothing():
    them = members(up(A, "fd00::1"), known=Known((B,)))
    assert them.decide(0).servers == (B,)
    assert them.problem() == "no node has an address of IPv4: correct nodes.families."
    assert them.without_address() == ["a"]


def test_the_last_list_counts_until_another_one_is_read():
    assert Membership(Nodes(), Known((A, B))).decide(0).servers == (A, B)


def test_who_was_left_out_before_a_restart_stays_out_until_it_is_ready():
    them = members(up(A), unready(B), known=Known((A,), ("b", "gone")))
    assert them.decide(0) == Known((A,), ("b",))
    them.change(up(B), 1)
    assert them.decide(1).servers == (A, B)


def test_an_address_that_changes_changes_the_server():
    them = members(up(A), up(B))
    them.change(up(B, "10.0.0.9"), 1)
    assert them.decide(1).servers == (A, Server("b", "10.0.0.9"))


def test_two_nodes_with_one_address_are_one_server():
    assert members(up(A), up(B, A.address)).decide(0).servers == (A,)


def test_many_nodes_that_join_at_once_are_all_servers():
    them = members()
    for at in range(500):
        them.change(up(Server(f"n{at}", f"10.1.{at // 250}.{at % 250 + 1}")), at)
    assert len(them.decide(500).servers) == len(them) == 500
