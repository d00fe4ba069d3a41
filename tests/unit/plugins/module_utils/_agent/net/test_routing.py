# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Routes in messages of the kernel. With a real one: tests/netns/test_agent_routes.py."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import messages, netlink, routing
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.messages import Message
from ansible_collections.onprem.lb.plugins.module_utils._agent.net.routing import Route
from hypothesis import given
from hypothesis import strategies as st

FOUR = Route("10.0.0.0/8", "192.0.2.254", 3, "192.0.2.10", 50, 7)
SIX = Route("2001:db8::/32", "fe80::1", 3, metric=1024)
EACH = pytest.mark.parametrize(
    "route", [FOUR, SIX, Route("0.0.0.0/0", index=2), Route("::/0", index=2), FOUR._replace(table=1000)]
)


@EACH
def test_what_is_added_is_what_is_read(route):
    assert routing.route_in(routing.body(route, adding=True)) == route


@EACH
def test_a_route_is_deleted_by_all_that_identifies_it_whatever_its_scope(route):
    adding, deleting = (routing.body(route, adding) for adding in (True, False))
    assert adding[12:] == deleting[12:]
    assert (deleting[5], deleting[6], deleting[7]) == (routing.PROTOCOL, 255, 0)


@pytest.mark.parametrize(
    "at, value",
    [(5, 4), (7, 6), (0, 7), (1, 33)],
    ids=["of another program", "a blackhole", "of another family", "too long"],
)
def test_other_routes_are_none_of_a_vrrp_router(at, value):
    body = bytearray(routing.body(FOUR, adding=True))
    body[at] = value
    assert routing.route_in(bytes(body)) is None


def test_what_the_kernel_has_cloned_is_no_route():
    body = bytearray(routing.body(SIX, adding=True))
    struct.pack_into("=I", body, 8, 0x200)
    assert routing.route_in(bytes(body)) is None


@given(st.binary(max_size=64))
def test_no_message_raises(body):
    routing.route_in(body)


def test_a_deletion_is_an_event_and_an_addition_is_none():
    bodies = routing.body(FOUR, adding=True)
    data = b"".join(messages.encode(Message(kind, 0, 0, bodies)) for kind in (routing.NEW_ROUTE, routing.DELETE_ROUTE))
    assert netlink.events_in(data) == [netlink.RouteGone(FOUR)]


@pytest.mark.parametrize(
    "left, superseded",
    [
        (FOUR, False),
        (FOUR._replace(via="192.0.2.253"), True),
        (FOUR._replace(via=""), True),
        (FOUR._replace(index=4), True),
        (FOUR._replace(src=""), True),
        (FOUR._replace(metric=60), False),
        (FOUR._replace(table=8), False),
        (FOUR._replace(to="10.0.0.0/16"), False),
    ],
)
def test_another_way_to_the_same_network_is_superseded(left, superseded):
    assert routing.is_superseded(left, by=FOUR) == superseded


def test_the_kernels_own_metric_of_ipv6_is_the_one_that_was_not_given():
    assert routing.is_superseded(SIX._replace(via="fe80::2"), by=SIX._replace(metric=0))
    assert not routing.is_superseded(SIX, by=SIX._replace(metric=0))
