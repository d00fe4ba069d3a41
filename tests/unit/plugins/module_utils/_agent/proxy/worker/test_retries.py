# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session whose server cannot be reached, and the slot that it has there."""

from __future__ import annotations

import errno
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.endpoint import WAITING
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.servers import Pool
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.worker.session import Session


class Loop:
    """Takes what it is told, and does nothing."""

    def __init__(self):
        self.handlers = {}

    def close_later(self, *ends):
        pass

    watch = ignore_errors = watch_errors = close_later


class Frontend:
    """A service with one server, which has one slot."""

    def __init__(self, retries):
        self.loop, self.retries, self.connecting, self.routes = Loop(), retries, {}, ()
        server = settings.Server("a", "192.0.2.1", 80, maxconn=1)
        self.pool = Pool(settings.Service("web", ("*",), 80, (server,)), int)

    def failed(self, server, _fault):
        self.pool.back_off(server, 1.0)


@pytest.mark.parametrize("retries, kept", [(3, 1), (2, 1), (1, 0)])
def test_a_session_keeps_its_slot_for_each_retry_but_the_last_one(retries, kept, monkeypatch):
    frontend = Frontend(retries)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        session = Session(frontend, ours, "192.0.2.9")
        monkeypatch.setattr(Session, "_attempt", lambda self: self._failed(errno.ECONNREFUSED))
        session.begin()
        assert (session.state, session.attempts) == (WAITING, 1)
        assert frontend.pool.servers[0].current == kept
