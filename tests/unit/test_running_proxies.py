# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxies that tests start leave no process behind, however the test ends."""

from __future__ import annotations

import os
import signal
import socket

import pytest
from support import leaks
from support.agent.programs import children
from support.ports import free_ports
from support.proxy.masters import Echo, Running, service
from support.proxy.proxies import LIMIT, LOCAL
from support.waiting import until


class Broken(Exception):
    """A test fails."""


@pytest.fixture
def proxy(tmp_path):
    """One with a session, so that its worker would outlive it."""
    (port,) = free_ports(1)
    with Echo("a") as echo:
        made = Running(tmp_path, {"services": [service(port, {"a": echo})]})
        with socket.create_connection((LOCAL, port), LIMIT) as client:
            client.sendall(b"1")
            assert client.recv(10)
            yield made


def stop_in_a_handover(proxy):
    """Stop the old program while the new one is tried: neither of them hears any more that it is to end."""
    before = children(proxy.process.pid)
    proxy.process.send_signal(signal.SIGUSR2)
    tried = until(lambda: {*children(proxy.process.pid)} - {*before})
    for pid in (proxy.process.pid, *map(int, tried)):
        os.kill(pid, signal.SIGSTOP)
    proxy.limit = 0.1


def kill(proxy):
    proxy.process.kill()
    proxy.process.wait()


@pytest.mark.parametrize("break_it", [stop_in_a_handover, kill])
def test_nothing_is_left_of_a_proxy_whose_test_has_failed(proxy, break_it):
    with pytest.raises((Broken, AssertionError)), proxy:
        assert len(leaks.marked(proxy.mark)) == 3  # it has a worker, and checks
        break_it(proxy)
        raise Broken
    assert leaks.marked(proxy.mark) == []
