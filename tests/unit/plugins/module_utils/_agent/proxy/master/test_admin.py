# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status socket of a proxy: it tells, and it is told."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import admin
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from hypothesis import given
from hypothesis import strategies as st
from support.agent.clients import while_running
from support.proxy.health import HealthCase, service


@pytest.fixture
def health():
    return HealthCase(service()).health


REPORT = {"version": "1.0.0", "config_fault": None, "limits": [], "services": []}


class Late:
    """How many workers do not execute an order in time."""

    workers = 0

    def executed(self, call):
        call(self.workers)


@pytest.fixture
def late():
    return Late()


@pytest.fixture
def ask(tmp_path, health, late):
    """Visit the socket."""
    loop, path = Loop(), str(tmp_path / "proxy.sock")
    report = status_socket.document(REPORT)
    answer = admin.answers(lambda: report, lambda request: admin.execute(health, request), late.executed)
    server = status_socket.UnixSocketServer(loop, path, answer)
    yield lambda visit, *arguments, **named: while_running(loop, lambda: visit(path, *arguments, **named))
    server.close()
    loop.close()


def test_an_empty_request_returns_the_report(ask):
    assert ask(status_socket.fetch) == REPORT


@pytest.mark.parametrize("order, state", [("drain", "drain"), ("maint", "maint"), ("ready", "up")])
def test_an_order_is_done_and_confirmed(ask, health, order, state):
    assert ask(admin.request, "web/a", order) == f"web/a is {state}."
    assert (health["web/a"].state, health["web/b"].state) == (state, "up")


@pytest.mark.parametrize(
    "workers, sentence", [(1, " 1 worker has not executed it yet."), (2, " 2 workers have not executed it yet.")]
)
def test_an_answer_says_which_workers_still_serve_as_before(ask, late, workers, sentence):
    late.workers = workers
    assert ask(admin.request, "web/a", "maint") == f"web/a is maint.{sentence}"


@pytest.mark.parametrize(
    "server, sentence",
    [
        ("web/aa", "there is no server web/aa: did you mean web/a?"),
        ("12345", "there is no server 12345: write it as SERVICE/SERVER."),
    ],
)
def test_an_order_for_an_unknown_server_is_refused(ask, server, sentence):
    def visit(path):
        with pytest.raises(status_socket.Refused) as refused:
            admin.request(path, server, "drain")
        return str(refused.value)

    assert ask(visit) == sentence


@given(
    st.binary(min_size=1, max_size=50)
    | st.sampled_from([None, [], {}, {"server": 1}, {"server": "web/a"}, {"server": ["web/a"], "order": "drain"}]).map(
        lambda item: json.dumps(item).encode()
    )
)
def test_garbage_is_refused(request):
    answer = admin.answers(bytes, lambda request: admin.execute(HealthCase(service()).health, request), print)
    assert json.loads(answer(request, True)) == {"refused": "a server and one of ready, drain, maint are required."}


def test_what_never_ends_is_refused_before_it_does():
    answer = admin.answers(bytes, lambda request: {"refused": "so"}, print)
    assert answer(b"[" * 4096, False) is None
    assert json.loads(answer(b"[" * 4097, False)) == {"refused": "so"}


def test_a_server_that_is_no_proxy_is_refused(monkeypatch):
    monkeypatch.setattr(status_socket, "fetch", lambda path, request: {"instances": []})
    with pytest.raises(status_socket.Refused, match="what answers at /x is not a proxy."):
        admin.request("/x", "web/a", "drain")
