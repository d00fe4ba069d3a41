# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every balancer computes the same buckets, evenly; one server's change moves few, and the second one knows them."""

from __future__ import annotations

from collections import Counter

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import buckets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import Server
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scope import FULL

COUNT = 4096
ANY_COUNT = COUNT if FULL else 256  # for what is so in each single bucket
MANY = 50 if FULL else 25
ADDRESSES = st.integers(1, 2**32 - 1).map(str)


def lists(drains):
    server = st.builds(Server, ADDRESSES, st.integers(1, 4), drains)
    return st.lists(server, min_size=2, max_size=5, unique_by=lambda server: server.address)


SERVERS, NONE_DRAINS = lists(st.booleans()), lists(st.just(False))


def some(count, network=1):
    return [Server(f"192.0.{network}.{number}") for number in range(1, count + 1)]


def table(servers, count=ANY_COUNT):
    return buckets.table(servers, count)


def shares(table):
    return Counter(bucket.owner for bucket in table)


def moved(before, after):
    """Return the buckets that have another owner, before and after."""
    return [(old, new) for old, new in zip(before, after) if old.owner != new.owner]


@settings(deadline=None, max_examples=20)
@given(SERVERS, st.randoms())
def test_the_order_of_the_list_does_not_count(servers, random):
    before = table(servers)
    random.shuffle(servers)
    assert table(servers) == before


@settings(deadline=None, max_examples=20)
@given(SERVERS)
def test_each_bucket_has_two_servers_and_one_that_drains_owns_none(servers):
    draining = {server.address for server in servers if server.drains}
    found = table(servers)
    assert len(found) == (ANY_COUNT if len(draining) < len(servers) else 0)
    for bucket in found:
        assert bucket.owner not in draining and bucket.second not in ("", bucket.owner)


def test_one_server_owns_everything_and_nobody_is_second():
    assert set(table(some(1))) == {("192.0.1.1", "")}
    assert table([]) == []


@pytest.mark.parametrize("count", [3, 4, 5, 7, 9, 12, 16, 17, 25, 33, 50])
def test_the_shares_are_even(count):
    found = shares(buckets.table(some(count), buckets.size(count)))
    assert len(found) == count
    assert max(found.values()) < 1.25 * buckets.size(count) / count


@pytest.mark.parametrize("count", [4, 8, 16, MANY])
@pytest.mark.parametrize("network", [1, 2])
def test_a_server_that_goes_moves_few_buckets(count, network):
    servers = some(count, network)
    before = buckets.table(servers, buckets.size(count))
    for gone in servers[:3]:
        after = buckets.table([each._replace(drains=each == gone) for each in servers], buckets.size(count))
        assert len(moved(before, after)) <= 1.1 * len(before) / count


def single_changes(servers, place, weight):
    """Return the lists of servers that differ in one server: added, drained, taken back, of more weight, removed."""
    one = servers[place % len(servers)]
    others = [server for server in servers if server is not one]
    added = Server("2001:db8::1", weight)
    yield servers, [*servers, added]
    yield servers, [*others, one._replace(drains=True)]
    yield [*others, one._replace(drains=True)], servers
    yield servers, [*others, one._replace(weight=one.weight + weight)]
    yield [*others, one._replace(drains=True)], others


@settings(deadline=None, max_examples=20)
@given(NONE_DRAINS, st.integers(0, 5), st.integers(1, 4))
def test_whoever_owned_a_bucket_before_one_server_changed_is_second_now(servers, place, weight):
    for old, new in single_changes(servers, place, weight):
        for was, now in moved(table(old), table(new)):
            assert now.second == was.owner


@settings(deadline=None, max_examples=20)
@given(SERVERS, st.integers(1, 4))
def test_a_bucket_moves_only_to_the_server_that_was_added(servers, weight):
    added = Server("2001:db8::1", weight)
    assert {now.owner for _was, now in moved(table(servers), table([*servers, added]))} <= {added.address}


@pytest.mark.parametrize("weight", [2, 3, 10])
def test_a_share_is_as_large_as_the_weight(weight):
    first, *others = some(8)
    found = shares(table([first._replace(weight=weight), *others], COUNT))
    due = COUNT * weight / (weight + 7)
    assert abs(found[first.address] - due) < 0.1 * due


def test_the_size_is_a_power_of_two_between_its_limits():
    sizes = [buckets.size(count) for count in range(1, 200)]
    assert sizes == sorted(sizes) and (sizes[0], sizes[7], sizes[8], sizes[-1]) == (4096, 4096, 8192, 65_536)
    assert all(each & (each - 1) == 0 for each in sizes)


def test_another_version_computes_the_same():
    """A balancer with another table than its peers' would send connections to servers that do not know them."""
    found = shares(table(some(3), COUNT))
    assert [found[server.address] for server in some(3)] == [1308, 1450, 1338]


@settings(deadline=None, max_examples=MANY)
@given(SERVERS)
def test_one_bucket_is_that_of_the_table(servers):
    found = table(servers)
    assert found == [buckets.bucket(servers, ANY_COUNT, number) for number in range(len(found))]


def test_who_answers_what_is_handed_on_is_one_of_the_two_that_is_asked_itself_or_the_second():
    bucket = buckets.Bucket("a", "b")
    assert [bucket.other([each]) for each in "abc"] == ["b", "a", "a"]
    assert [bucket.answering(each) for each in "abc"] == ["a", "b", "b"]
