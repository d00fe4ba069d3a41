# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are servers, as events come and time passes."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.membership import Known, Membership
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.nodes import EXCLUDED, Node
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import MILLION, Nodes, Server

A, B, C = (Server(name, f"10.0.0.{at}") for at, name in enumerate("abc", 1))
NOTHING = Known()
LIMIT = 60 * MILLION
LABELS = {Nodes().label: ""}


def up(server, address=""):
    return Node(server.name, (address or server.address,), (), True, LABELS)


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
    assert them.decide(7 + LIMIT) == Known((A,), (B,))
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
    assert them.problem() == "All servers stay: the list has no node."
    them.change(up(C)._replace(labels={}), 3)
    assert them.decide(3).servers == (B,)
    assert them.problem().startswith("All servers stay: no node has the label node-role.kubernetes.io/control-plane: ")
    them.change(up(C), 3)
    assert them.decide(3).servers == (C,) and them.problem() is None


def test_the_last_node_stays_although_it_is_not_ready():
    them = members(up(A), unready(B))
    assert them.decide(LIMIT).servers == (A,)
    them.remove("a")
    assert them.decide(LIMIT).servers == (A,)
    assert them.problem() == "All servers stay: no node is ready: see `kubectl get nodes`."


def test_while_most_nodes_are_not_ready_none_leaves_for_that():
    them = members(up(A), up(B), up(C))
    for at, server in enumerate((A, B, C)):
        them.change(unready(server), at * MILLION)
    assert them.decide(2 * LIMIT).servers == (A, B, C) and them.due() is None
    assert them.problem() == (
        "a, b, c stay servers: 3 of 3 nodes are not ready or taken off, and of more than half none is removed for "
        "that: see `kubectl get nodes`."
    )
    them.change(up(A), 2 * LIMIT)
    assert them.decide(2 * LIMIT).servers == (A, B, C) and them.due() is None
    them.change(up(B), 2 * LIMIT)
    assert them.decide(2 * LIMIT).servers == (A, B) and them.problem() is None


def test_nodes_of_the_wrong_family_change_nothing():
    them = members(up(A, "fd00::1"), known=Known((B,)))
    assert them.decide(0).servers == (B,)
    assert them.problem() == "All servers stay: no node has an address that can be a server's."
    assert them.without_address() == ["a"]


def test_the_last_list_counts_until_another_one_is_read():
    assert Membership(Nodes(), Known((A, B))).decide(0).servers == (A, B)


def test_who_was_left_out_before_a_restart_stays_out_until_it_is_ready():
    them = members(up(A), unready(B), known=Known((A,), (B, C)))
    assert them.decide(0) == Known((A,), (B,))
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


# What a node that is there and ready has instead of its address, its label or its family.
VIP, UNKNOWN_VIP = "10.0.0.200", "10.0.0.201"
ABOUT = Nodes(vips=(VIP,), networks=("10.0.0.0/24",))
ODD = {
    "no address": up(B)._replace(internal=()),
    "a VIP": up(B, VIP),
    "a VIP that nobody knows of": up(B, UNKNOWN_VIP),
    "another node's address": up(B, A.address),
    "an address of another family": up(B, "fd00::2"),
    "an address that reaches nobody": up(B, "169.254.0.2"),
    "no label": up(B)._replace(labels={}),
    "another label": up(B)._replace(labels={"role": "worker"}),
    "neither": up(B)._replace(labels={}, internal=()),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("by_list", [True, False])
@pytest.mark.parametrize("answers", [{B.address: True}, None])
def test_a_node_that_is_there_and_ready_stays_a_server_where_it_is_and_it_is_said_why(odd, by_list, answers):
    them = Membership(ABOUT, NOTHING)
    them.replace([up(A), up(B), up(C)], 0)
    assert them.decide(0).servers == (A, B, C) and them.kept() == []
    if by_list:
        them.replace([up(A), ODD[odd], up(C)], 1)
    else:
        them.change(ODD[odd], 1)
    assert them.decide(100 * LIMIT, lambda: answers).servers == (A, B, C)
    (kept,) = them.kept()
    assert (kept.name, kept.address) == ("b", B.address) and kept.why
    them.change(up(B), 2)
    assert them.decide(200 * LIMIT, lambda: answers).servers == (A, B, C) and them.kept() == []


def test_all_of_them_at_once_stay():
    them = Membership(ABOUT, Known((A, B, C)))
    them.replace([up(A)._replace(labels={}), up(B, UNKNOWN_VIP), up(C)._replace(internal=())], 0)
    assert them.decide(0, lambda: {B.address: True}).servers == (A, B, C)
    assert [each.name for each in them.kept()] == ["a", "b", "c"]


def test_a_node_with_another_address_moves_once_its_server_does_not_answer():
    them = Membership(ABOUT, Known((A, B)))
    them.replace([up(A), up(B, "10.0.0.9")], 0)
    assert them.decide(0, lambda: {B.address: True}).servers == (A, B)
    assert them.due() == 5 * MILLION, "its check is asked again"
    assert them.decide(5 * MILLION, lambda: {B.address: False}).servers == (A, Server("b", "10.0.0.9"))
    assert them.due() is None


@pytest.mark.parametrize("about", [Nodes(vips=(B.address,)), Nodes(balancers=(B.address,))])
def test_a_server_at_an_address_that_the_user_says_is_a_vip_leaves_unless_it_is_the_last(about):
    them = Membership(about, Known((A, B)))
    them.replace([up(A), up(B)], 0)
    assert them.decide(0).servers == (A,) and them.without_address() == ["b"]
    them = Membership(about, Known((B,)))
    them.replace([up(B)], 0)
    assert them.decide(0).servers == (B,)


def test_an_address_that_the_node_still_has_stays_whatever_rule_would_choose():
    for about in (Nodes(), Nodes(of_several="last"), Nodes(networks=("192.0.2.0/24",))):
        them = Membership(about, Known((A,)))
        for addresses in (("192.0.2.1", A.address), (A.address, "192.0.2.1")):
            them.replace([up(A)._replace(internal=addresses)], 0)
            assert them.decide(0, lambda: {A.address: False}).servers == (A,)


def test_two_nodes_that_change_their_addresses_with_one_another_do_once_one_of_them_does_not_answer():
    them = Membership(ABOUT, Known((A, B, C)))
    them.replace([up(A, B.address), up(B, A.address), up(C)], 0)
    answers = dict.fromkeys((A.address, B.address), True)
    assert them.decide(0, lambda: answers).servers == (A, B, C) and len(them.kept()) == 2
    swapped = (Server("a", B.address), Server("b", A.address), C)
    assert them.decide(0, lambda: {**answers, A.address: False}).servers == swapped


def test_a_node_that_takes_the_address_which_another_one_has_left_gets_it():
    them = Membership(ABOUT, Known((A, B)))
    them.replace([up(A, B.address), up(B, "10.0.0.9")], 0)
    found = them.decide(0, lambda: {A.address: False, B.address: True}).servers
    assert found == (Server("a", B.address), Server("b", "10.0.0.9"))


def test_a_node_whose_address_a_new_node_has_moves_at_once():
    them = Membership(ABOUT, Known((A, B)))
    them.replace([up(A, "10.0.0.9"), up(B), up(C, A.address)], 0)
    found = them.decide(0, lambda: {A.address: True}).servers
    assert found == (Server("a", "10.0.0.9"), B, Server("c", A.address))


def test_a_renamed_node_stays_whether_its_old_object_is_there_or_not():
    new = Server("z", B.address)
    them = Membership(ABOUT, Known((A, B, C)))
    them.replace([up(A), unready(B), up(C), up(new)], 0)
    assert them.decide(100 * LIMIT).servers == (A, C, new)
    them.remove("b")
    assert them.decide(101 * LIMIT).servers == (A, C, new)


def test_the_inventorys_names_are_those_of_the_nodes_with_their_addresses():
    given = tuple(Server(f"first-{each.name}", each.address) for each in (A, B, C))
    them = Membership(Nodes(), Known(given), of_balancer=True)
    them.replace([up(A), up(B)._replace(labels={})], 0)
    assert them.decide(0).servers == (A, B), "c is in no list"
    assert [each.name for each in them.kept()] == ["b"]


def test_a_node_of_another_kind_that_gets_the_address_of_one_that_is_gone_is_no_server():
    worker = up(Server("w", B.address))._replace(labels={})
    assert members(up(A), worker, known=Known((A, B))).decide(0).servers == (A,)


def test_two_servers_of_the_balancers_file_with_one_address_are_one():
    them = Membership(Nodes(), Known((Server("x", A.address), Server("y", A.address))), of_balancer=True)
    them.replace([up(A), up(B)], 0)
    assert them.decide(0).servers == (A, B)


def test_who_is_out_already_is_not_said_to_stay():
    them = members(up(A), unready(B), up(C))
    assert them.decide(LIMIT).servers == (A, C)
    them.change(unready(C), LIMIT)
    assert them.decide(9 * LIMIT).servers == (A, C)
    assert them.problem().startswith("c stays a server: 2 of 3 nodes are not ready")


def test_a_label_that_the_user_has_changed_is_a_reason_to_leave():
    old = [up(each)._replace(labels={}) for each in (A, B)]
    new = [up(Server(f"n{at}", f"10.0.0.1{at}")) for at in range(3)]
    them = Membership(ABOUT, Known((A, B)), relabelled=True)
    them.replace([*old, *new], 0)
    assert [each.name for each in them.decide(0).servers] == ["n0", "n1", "n2"]
    them = Membership(ABOUT, Known((A, B)), relabelled=True)
    them.replace([*old, new[0]], 0)
    assert [each.name for each in them.decide(0).servers] == ["a", "b", "n0"], "which are two of three"
    assert "2 of 3 nodes are not ready or taken off" in them.problem()


def test_a_node_leaves_if_its_label_says_so_unless_most_do():
    off = dict([EXCLUDED], **LABELS)
    them = members(up(A), up(B), up(C))
    assert them.decide(0).servers == (A, B, C)
    them.change(up(A)._replace(labels=off), 1)
    assert them.decide(1).servers == (B, C) and them.problem() is None and them.without_address() == []
    them.change(up(B)._replace(labels=off), 2)
    assert them.decide(2).servers == (B, C) and "2 of 3 nodes are not ready or taken off" in them.problem()
    them.change(up(A), 3)
    assert them.decide(3).servers == (A, C)


def test_a_node_that_was_taken_off_comes_back_at_the_address_that_the_rule_chooses():
    both = up(A)._replace(internal=("10.0.0.7", A.address))
    them = members(both, up(B), known=Known((A, B)))
    assert them.decide(0).servers == (A, B)
    them.change(both._replace(labels=dict([EXCLUDED], **LABELS)), 1)
    assert them.decide(1).servers == (B,)
    them.change(both, 2)
    assert them.decide(2).servers == (Server("a", "10.0.0.7"), B)


def test_a_node_that_comes_back_without_its_address_is_where_it_was_even_after_a_restart():
    them = members(up(A), unready(B), up(C))
    known = them.decide(LIMIT)
    assert known == Known((A, C), (B,))
    again = members(up(A), up(B)._replace(internal=()), up(C), known=known)
    for each in (them, again):
        each.change(up(B)._replace(internal=()), LIMIT)
        assert each.decide(LIMIT).servers == (A, B, C)


def test_an_event_that_is_none_for_the_servers_changes_nothing():
    them = members(up(A), up(B)._replace(labels={}))
    them.decide(0)
    assert not them.change(up(A), 1), "it only lives"
    assert not them.change(up(B)._replace(labels={}, ready=False), 1), "it is no server"
    assert not them.remove("b") and not them.remove("c")
    assert them.change(up(A, "10.0.0.9"), 1) and them.remove("a")
