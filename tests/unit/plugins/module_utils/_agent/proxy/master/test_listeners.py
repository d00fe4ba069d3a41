# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listening sockets: prepared, kept, and taken back."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import listeners
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.listeners import Listeners, Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.settings import Place
from support.ports import free_ports


@pytest.fixture
def made():
    before = set(os.listdir("/proc/self/fd"))
    found = Listeners({})
    yield found
    found.close()
    assert set(os.listdir("/proc/self/fd")) <= before


@pytest.fixture
def port():
    return free_ports(1)[0]


def keep(made, *places):
    prepared = made.prepare({place: f"service {at}" for at, place in enumerate(places)})
    made.keep(prepared)
    return prepared


def is_served(address, port):
    try:
        socket.create_connection((address, port), 5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_every_address_of_one_family_is_not_of_the_other(made, port):
    keep(made, Place("*", port))
    assert is_served("127.0.0.1", port) and is_served("127.0.0.2", port) and not is_served("::1", port)
    keep(made, Place("::", port))
    assert is_served("::1", port) and not is_served("127.0.0.1", port)
    keep(made, Place("*", port), Place("::", port))
    assert is_served("::1", port) and is_served("127.0.0.1", port)


@pytest.mark.parametrize("address", ["192.0.2.77", "2001:db8::77"])
def test_an_address_that_is_not_on_this_host_is_listened_on(made, port, address):
    (each,) = keep(made, Place(address, port)).values()
    assert each.getsockname()[:2] == (address, port)
    assert not is_served("127.0.0.1", port) and not is_served("::1", port)


def test_what_is_accepted_sends_without_delay(made, port):
    (each,) = keep(made, Place("127.0.0.1", port)).values()
    with socket.create_connection(("127.0.0.1", port), 5):
        with each.accept()[0] as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        with pytest.raises(BlockingIOError):
            each.accept()


def test_what_is_wanted_again_is_the_same_socket(made, port):
    place = Place("127.0.0.1", port)
    first = keep(made, place)[place]
    assert keep(made, place)[place] is first


@pytest.mark.parametrize("again", ["127.0.0.1", "*"])
def test_a_place_is_wanted_again_before_the_workers_have_closed_it(made, port, again):
    place = Place("127.0.0.1", port)
    with keep(made, place)[place].dup():  # a worker's
        keep(made)
        found = keep(made, Place(again, port))
        assert found[Place(again, port)].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 0
    assert is_served("127.0.0.1", port)
    with pytest.raises(Refused):
        Listeners({}).prepare({place: "another proxy"})


def test_a_place_that_no_old_worker_has_any_more_is_not_shared_with_another_program(made, port):
    place = Place("127.0.0.1", port)
    keep(made, place)
    keep(made)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        made.forget_dropped()
        with pytest.raises(Refused):
            made.prepare({place: "service web"})


def test_every_address_that_cannot_be_bound_is_reported_and_nothing_is_changed(made):
    first, second, third, mine = free_ports(4)
    place = Place("127.0.0.1", mine)
    keep(made, place)
    with socket.create_server(("127.0.0.1", first)), socket.create_server(("", second)):
        wanted = {
            Place("127.0.0.1", first): "service web",
            Place("127.0.0.1", third): "service api",
            Place("127.0.0.1", second): "monitor alive, page",
        }
        with pytest.raises(Refused) as refused:
            made.prepare(wanted)
    mend = "stop that one, or choose another address or port."
    assert refused.value.reasons == [
        f"service web: 127.0.0.1 port {first} is in use by another program: {mend}",
        f"monitor alive, page: 127.0.0.1 port {second} is in use by another program: {mend}",
    ]
    assert is_served("127.0.0.1", mine) and not is_served("127.0.0.1", third)


def test_what_is_taken_back_is_closed_and_the_rest_stays(made):
    first, second = free_ports(2)
    keep(made, Place("127.0.0.1", first))
    made.discard(made.prepare({Place("127.0.0.1", port): "x" for port in (first, second)}))
    assert is_served("127.0.0.1", first) and not is_served("127.0.0.1", second)


def test_a_port_for_root_only_is_named(monkeypatch, made):
    class Forbidden(socket.socket):
        def bind(self, _address):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(listeners.socket, "socket", Forbidden)
    with pytest.raises(Refused, match=r"\* port 80 may not be listened on: 80 is a port for root, or for CAP_NET_BIND"):
        made.prepare({Place("*", 80): "service web"})


@pytest.mark.parametrize("before, after", [("*", "127.0.0.1"), ("127.0.0.1", "*")])
def test_one_place_may_follow_another_that_overlaps_without_a_gap(made, port, before, after):
    keep(made, Place(before, port))
    prepared = made.prepare({Place(after, port): "service web"})
    assert is_served("127.0.0.1", port)
    made.keep(prepared)
    assert is_served("127.0.0.1", port)
    # That was between the two: others cannot have it.
    with pytest.raises(Refused):
        Listeners({}).prepare({Place("127.0.0.1", port): "another proxy"})


def test_an_address_that_another_place_covers_keeps_its_socket(made, port):
    own, other, every = Place("127.0.0.1", port), Place("127.0.0.2", port), Place("*", port)
    first = keep(made, own)[own]
    found = keep(made, every)
    assert set(found) == {every, own} and found[own] is first
    with socket.create_connection(("127.0.0.1", port), 5):
        first.accept()[0].close()
    assert set(keep(made, every)) == {every, own}
    assert set(keep(made, other, own)) == {other, own}
    assert set(keep(made, other)) == {other} and not is_served("127.0.0.1", port)


def test_when_the_other_place_cannot_be_had_the_port_is_not_left_open_to_others(made, port):
    keep(made, Place("127.0.0.1", port))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.2", port))
        other.listen()
        with pytest.raises(Refused):
            made.prepare({Place("*", port): "service web"})
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with socket.socket() as third:
            third.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="Address already in use"):
                third.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    "one, other, expected",
    [
        (("*", 80), ("192.0.2.1", 80), True),
        (("192.0.2.1", 80), ("192.0.2.1", 80), True),
        (("::", 80), ("2001:db8::1", 80), True),
        (("*", 80), ("::", 80), False),
        (("*", 80), ("2001:db8::1", 80), False),
        (("*", 80), ("*", 81), False),
        (("192.0.2.1", 80), ("192.0.2.2", 80), False),
    ],
)
def test_which_places_overlap(one, other, expected):
    assert (Place(*one).covers(Place(*other)) or Place(*other).covers(Place(*one))) == expected
    assert Place(*one).overlaps(Place(*other)) == Place(*other).overlaps(Place(*one)) == expected
