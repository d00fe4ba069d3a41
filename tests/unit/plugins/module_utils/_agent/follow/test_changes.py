# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to change in a balancer's servers."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Changes, between, sentences
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Server

A, B, C = (Server(name, f"10.0.0.{at}") for at, name in enumerate("abc", 1))


def test_what_is_as_it_should_be_needs_nothing():
    assert between([B, A], [A, B]) == Changes()


def test_who_joins_is_added_and_who_leaves_is_dropped():
    assert between([A, B], [A, C]) == Changes((C,), (), (B,))


def test_a_node_that_is_renamed_changes_nothing():
    assert between([A, B], [A, Server("renamed", B.address)]) == Changes()


def test_a_node_with_another_address_is_the_same_server():
    moved = B._replace(address="10.0.0.9")
    assert between([A, B], [A, moved]) == Changes((), (moved,), ())


def test_two_nodes_that_change_their_addresses_with_each_other_change_nothing():
    assert between([A, B], [Server("a", B.address), Server("b", A.address)]) == Changes()


def test_a_name_that_another_server_has_gets_a_number():
    present = [Server("b", A.address)]
    assert between(present, [A, B]).added == (Server("b-2", B.address),)


def test_each_change_is_a_sentence():
    moved = B._replace(address="10.0.0.9")
    assert sentences("masters", Changes((A,), (moved,), (C,)), 2) == [
        "masters: a at 10.0.0.1 is added: 2 servers.",
        "masters: b is at 10.0.0.9 now: 2 servers.",
        "masters: c at 10.0.0.3 leaves: 2 servers.",
    ]
