# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lasting connections, to a server of this process."""

from __future__ import annotations

import socket
import struct

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill.lasting import KEEPALIVE, Lasting
from support.waiting import until

NUMBER = 5
TCP_CLOSE = 7  # linux/tcp_states.h


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def opened(server):
    """Lasting connections, and the server's ends of them."""
    lasting = Lasting.open(*server.getsockname(), NUMBER)
    return lasting, [server.accept()[0] for _number in range(NUMBER)]


def has_arrived(sock):
    """Whether something has arrived at a socket: data, an end or an error."""
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def test_connections_that_stay_open_are_not_lost_whatever_the_server_says(server):
    lasting, ends = opened(server)
    ends[0].send(b"welcome")
    until(lambda: has_arrived(lasting.sockets[0]))
    assert lasting.close() == {"held": NUMBER, "lost": 0, "closed": 0}
    for end in ends:
        end.close()


@pytest.mark.parametrize("reset", [True, False])
def test_a_connection_that_was_reset_or_closed_is_lost_and_which_of_both_is_told(server, reset):
    lasting, ends = opened(server)
    for end in ends[:2]:
        end.send(b"bye")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", reset, 0))
        end.close()
    for sock in lasting.sockets[:2]:
        until(lambda sock=sock: has_arrived(sock))
    assert lasting.close() == {"held": NUMBER, "lost": 2, "closed": 0 if reset else 2}
    for end in ends[2:]:
        end.close()


def test_one_that_the_server_closed_first_and_whose_path_then_goes_is_reset(server):
    """As another host does, which has never heard of it: here the kernel, once the server's end is gone."""
    lasting, ends = opened(server)
    ends[0].shutdown(socket.SHUT_WR)
    until(lambda: has_arrived(lasting.sockets[0]))
    ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ends[0].close()
    until(lambda: lasting.sockets[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE)
    assert lasting.close() == {"held": NUMBER, "lost": 1, "closed": 0}
    for end in ends[1:]:
        end.close()


def test_what_could_not_be_opened_is_not_held(server):
    address, port = server.getsockname()
    server.close()
    assert Lasting.open(address, port, NUMBER).close() == {"held": 0, "lost": 0, "closed": 0}


def test_the_kernel_asks_for_a_silent_connection_within_a_second(server):
    lasting, ends = opened(server)
    for sock in lasting.sockets:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert {option: sock.getsockopt(socket.IPPROTO_TCP, option) for option in KEEPALIVE} == KEEPALIVE
    assert KEEPALIVE[socket.TCP_KEEPIDLE] == 1
    lasting.close()
    for end in ends:
        end.close()
