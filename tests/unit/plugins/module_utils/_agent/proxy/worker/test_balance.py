# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gets the next connection."""

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker import balance
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.balance import (
    LeastConnections,
    RoundRobin,
    Source,
)
from hypothesis import given
from hypothesis import strategies as st

CLIENTS = [f"10.{number >> 8 & 255}.{number & 255}.7" for number in range(3000)]


class Member:
    def __init__(self, name: str, weight: int = 1, current: int = 0) -> None:
        self.name, self.weight, self.current = name, weight, current


def members(**weights):
    return [Member(name, weight) for name, weight in weights.items()]


def method(kind, those):
    made = kind()
    made.change(those)
    return made


def names(made, clients) -> list:
    return [made.choose(client).name for client in clients]


# -- roundrobin


def test_equal_members_take_turns():
    assert names(method(RoundRobin, members(a=1, b=1, c=1)), range(6)) == ["a", "b", "c"] * 2


@given(st.lists(st.integers(1, 256), min_size=1, max_size=8))
def test_turns_are_in_proportion_to_weight_and_evenly_spread(weights):
    made = method(RoundRobin, [Member(str(at), weight) for at, weight in enumerate(weights)])
    total = sum(weights)
    turns = [int(name) for name in names(made, range(2 * total))]
    for at, weight in enumerate(weights):
        assert abs(turns[:total].count(at) - weight) <= 1
        assert abs(turns.count(at) - 2 * weight) <= 1
        # No member waits much longer for a turn than the weight says.
        mine = [moment for moment, turn in enumerate(turns) if turn == at]
        assert max((later - one for one, later in zip(mine, mine[1:])), default=0) <= total // weight + len(weights)


def test_a_fraction_of_a_weight_is_a_fraction_of_the_turns():
    """As of a server that starts slowly."""
    made = method(RoundRobin, members(a=1, b=0.25, c=0.05))
    assert Counter(names(made, range(1300))) == {"a": 1000, "b": 250, "c": 50}


def test_changes_more_frequent_than_clients_favour_no_member():
    those = members(a=10, b=10, c=10)
    made = method(RoundRobin, those)
    turns = []
    for weight in range(1, 31):
        those[2].weight = weight
        made.change(those)
        turns += names(made, [""])
    assert min(Counter(turns)[name] for name in "abc") >= 5


def test_a_member_whose_weight_is_raised_does_not_wait_for_the_turn_of_its_old_weight():
    """At the end of a slow start its turn may be as far off as its smallest weight has put it."""
    those = members(a=1, b=0.01)
    made = method(RoundRobin, those)
    while names(made, [""]) != ["b"]:
        pass
    those[1].weight = 1
    made.change(those)
    assert "b" in names(made, range(3))


def test_a_server_that_comes_back_does_not_make_up_for_missed_turns():
    a, b = members(a=1, b=1)
    made = method(RoundRobin, [a, b])
    made.change([a])
    names(made, range(100))
    made.change([a, b])
    assert Counter(names(made, range(10))) == {"a": 5, "b": 5}


# -- leastconn


def test_the_least_loaded_is_chosen():
    those = members(a=1, b=1, c=1)
    those[0].current, those[1].current, those[2].current = 5, 2, 3
    assert names(method(LeastConnections, those), [""]) == ["b"]


def test_load_is_judged_by_weight():
    those = members(a=4, b=1)
    those[0].current, those[1].current = 6, 2
    assert names(method(LeastConnections, those), [""]) == ["a"]


def test_equally_loaded_members_take_turns():
    assert names(method(LeastConnections, members(a=1, b=1, c=1)), range(6)) == ["a", "b", "c"] * 2


def test_as_sessions_come_the_load_follows_the_weights():
    those = members(a=1, b=2, c=5)
    made = method(LeastConnections, those)
    for _each in range(80):
        made.choose("").current += 1
    assert [member.current for member in those] == [10, 20, 50]


# -- source


def test_a_client_has_the_same_server_on_every_balancer_in_whatever_order_they_are_listed():
    here, there = members(a=1, b=3, c=2), list(reversed(members(a=1, b=3, c=2)))
    assert names(method(Source, here), CLIENTS) == names(method(Source, there), CLIENTS)


def test_the_choice_is_the_same_in_every_version():
    """Balancers of different versions stand beside each other while they are upgraded."""
    made = method(Source, members(alpha=1, beta=1, gamma=2))
    clients = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "198.51.100.7", "2001:db8::1", "2001:db8::2"]
    assert names(made, clients) == ["gamma", "gamma", "alpha", "alpha", "gamma", "gamma", "gamma"]


@pytest.mark.parametrize("weights", [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 5}, {"a": 256, "b": 1}])
def test_clients_are_in_proportion_to_weight(weights):
    found = Counter(names(method(Source, members(**weights)), CLIENTS))
    for name, weight in weights.items():
        expected = len(CLIENTS) * weight / sum(weights.values())
        assert abs(found[name] - expected) < 4 * expected**0.5 + 1


def test_a_lost_server_moves_only_its_own_clients_and_gets_them_back():
    all_three = members(a=1, b=2, c=1)
    made = method(Source, all_three)
    before = names(made, CLIENTS)
    made.change([all_three[0], all_three[2]])
    without = names(made, CLIENTS)
    assert all(one == other for one, other in zip(before, without) if one != "b")
    assert {other for one, other in zip(before, without) if one == "b"} == {"a", "c"}
    made.change(all_three)
    assert names(made, CLIENTS) == before


def test_a_weight_that_grows_takes_clients_and_moves_no_others():
    those = members(a=2, b=2, c=2)
    made = method(Source, those)
    before = names(made, CLIENTS)
    those[1].weight = 4
    made.change(those)
    after = names(made, CLIENTS)
    assert all(other in (one, "b") for one, other in zip(before, after))
    assert after.count("b") > before.count("b")


def test_not_every_client_there_ever_was_is_remembered(monkeypatch):
    monkeypatch.setattr(balance, "MAX_CLIENTS", 10)
    made = method(Source, members(a=1, b=1))
    before = names(made, CLIENTS[:100])
    assert len(made._choices) <= 10
    assert names(made, CLIENTS[:100]) == before


def test_the_interface_of_a_link_local_client_does_not_count():
    made = method(Source, members(**{f"s{number}": 1 for number in range(50)}))
    assert made.choose("fe80::1%eth0") is made.choose("fe80::1%ens192")
