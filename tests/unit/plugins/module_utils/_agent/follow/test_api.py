# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists and watches of a real server over TLS, and every way in which that fails."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import api as tested
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.api import Client
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Api
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.watching import (
    Ended,
    Failed,
    Page,
    PageRequest,
    Refused,
    Silent,
    WatchRequest,
)
from support.follow.api_server import TOKEN
from support.follow.nodes import node
from support.waiting import LIMIT_S, until


def listed(api):
    return Client(api).page(PageRequest(0))


@pytest.mark.parametrize("url, port", [("https://192.0.2.1", 443), ("https://192.0.2.1:6443", 6443)])
def test_a_url_without_a_port_means_that_of_https(monkeypatch, url, port):
    asked = []

    def refuse(address, _timeout):
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert isinstance(listed(Api((url,))), Failed) and asked == [("192.0.2.1", port)]


class Watch:
    """A watch in a thread, until it ends."""

    def __init__(self, api, version, seconds=600) -> None:
        self.lines, self.opened, self.outcome = [], 0, None
        self.client = Client(api)
        self.thread = threading.Thread(target=self._run, args=(WatchRequest(0, version, seconds),))
        self.thread.start()

    def _run(self, request) -> None:
        self.outcome = self.client.watch(request, self._open, self.lines.append)

    def _open(self) -> None:
        self.opened += 1

    def end(self):
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()
        return self.outcome


@pytest.fixture
def watch(server, api):
    found = Watch(api, "100")
    until(lambda: server.watches)
    yield found
    found.client.close()
    found.end()


def test_a_list_has_all_nodes_and_the_version(server, api):
    server.put(node("a", "10.0.0.1"), node("worker", "10.0.0.2", labels=()))
    found = listed(api)
    assert isinstance(found, Page) and found.version == "102" and not found.page
    assert [item["metadata"]["name"] for item in found.items] == ["a", "worker"]


def test_many_nodes_come_in_pages(server, api):
    server.put(*(node(f"n{at}", "10.0.0.1") for at in range(120)))
    client, request, names = Client(api), PageRequest(0), []
    while True:
        page = client.page(request)
        names += [item["metadata"]["name"] for item in page.items]
        if not page.page:
            break
        request = PageRequest(0, page.page)
    assert len(names) == len(set(names)) == 120
    assert len(server.requests) == 3


def test_a_watch_has_each_change_as_it_comes_and_asks_for_bookmarks(server, watch):
    server.put(node("a", "10.0.0.1"))
    until(lambda: watch.lines)
    server.bookmark()
    until(lambda: len(watch.lines) == 2)
    assert [line["type"] for line in watch.lines] == ["ADDED", "BOOKMARK"]
    assert watch.opened == 1
    assert server.requests[-1]["timeoutSeconds"] == "600"


def test_a_watch_that_the_server_ends_has_ended(server, watch):
    server.end_watches()
    assert isinstance(watch.end(), Ended)


def test_a_watch_that_is_cut_has_ended_and_says_how(server, watch):
    server.cut()
    outcome = watch.end()
    assert isinstance(outcome, Ended) and outcome.cut, outcome


@pytest.mark.parametrize("said", [None, b'{"type": "ADD'])
def test_a_watch_without_a_whole_line_for_long_is_silent_although_its_connection_is_open(
    server, api, monkeypatch, said
):
    """As of a process that hangs, or behind a balancer that has forgotten it."""
    monkeypatch.setattr(tested, "SILENT", 0.3)
    found = Watch(api, "100")
    until(lambda: found.opened and server.watches)
    if said:
        while found.thread.is_alive():
            server.say(said)
    assert isinstance(found.end(), Silent)


def test_bookmarks_keep_a_watch_alive_and_its_end_is_no_silence(server, api, monkeypatch):
    monkeypatch.setattr(tested, "SILENT", LIMIT_S)
    monkeypatch.setattr(tested, "GRACE", 0)
    found = Watch(api, "100", seconds=1)
    until(lambda: found.opened and server.watches)
    while found.thread.is_alive():
        server.bookmark()
    assert isinstance(found.end(), Ended) and len(found.lines) > 1


def test_a_server_that_sends_little_by_little_is_understood(server, api):
    server.piece = 7
    found = Watch(api, "100")
    until(lambda: server.watches)
    server.put(node("a", "10.0.0.1"), node("b", "10.0.0.2"))
    until(lambda: len(found.lines) == 2)
    found.client.close()
    found.end()


def test_a_storm_of_events_is_read(server, watch):
    for _round in range(10):
        server.put(*(node(f"n{at}", "10.0.0.1") for at in range(100)))
    until(lambda: len(watch.lines) == 1000)


def test_a_watch_ends_as_soon_as_its_client_is_closed(watch):
    watch.client.close()
    assert isinstance(watch.end(), (Failed, Ended))


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"a": \xff}\n', b"[" * 100_000 + b"\n"])
def test_a_line_that_is_no_json_ends_the_watch(server, watch, line):
    server.say(line)
    assert watch.end() == Failed("the answer is not JSON")


def test_a_line_without_an_end_ends_the_watch(server, watch):
    server.say(b"x" * 5_000_000)
    assert watch.end() == Failed("a line of the watch is too long")


def test_an_expired_version_is_410(server, api):
    server.expire()
    server.expired_as_status = True
    assert Watch(api, "50").end() == Refused(410, "too old resource version: 50 (101)")


def test_a_version_that_the_server_does_not_know_is_504(api):
    assert Watch(api, "999").end() == Refused(504, "Timeout: Too large resource version: 999, current: 100")


def test_a_token_is_read_anew_for_each_request(server, api, token):
    server.tokens = {"new"}
    assert listed(api) == Refused(401, "Unauthorized")
    token.write_text("new")
    assert isinstance(listed(api), Page)


def test_a_client_certificate_is_as_good_as_a_token(server, api, clients):
    by_certificate = api._replace(token="", certificate=clients.file, key=clients.key)
    assert isinstance(listed(by_certificate), Page)
    assert listed(api._replace(token="")) == Refused(401, "Unauthorized")


def test_a_refusal_has_its_reason_and_when_to_come_back(server, api):
    server.refusing = [(403, {}), (429, {"Retry-After": "7"}), (503, {"Retry-After": "nonsense"})]
    outcomes = [listed(api) for _time in range(3)]
    assert [(each.status, each.retry_after) for each in outcomes] == [(403, 0), (429, 7), (503, 0)]
    assert outcomes[0].detail == (
        'nodes is forbidden: User "lb" cannot list resource "nodes" in API group "" at the cluster scope'
    )


def test_a_redirect_is_not_followed(server, api):
    server.refusing = [(302, {"Location": "https://192.0.2.1/"})]
    assert listed(api).status == 302


def test_nobody_there_is_a_failure(server, api):
    server.away()
    assert listed(api) == Failed("connection refused")
    server.back()
    assert isinstance(listed(api), Page)


def test_a_server_that_says_nothing_is_given_up(api):
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        assert listed(api._replace(servers=(url,), timeout=100_000)) == Failed("no answer in time")


def clock_of_looks(monkeypatch):
    """Have the client's clock alone, and not the server's, go on by 3 s with each look; return what is to come."""
    moments = iter(range(0, 1_000_000, 3))
    monkeypatch.setattr(tested, "time", SimpleNamespace(monotonic=lambda: float(next(moments))))
    return moments


def test_a_server_that_sends_a_list_too_slowly_is_given_up(server, api, monkeypatch):
    server.put(node("a", "10.0.0.1"))
    clock_of_looks(monkeypatch)
    assert listed(api._replace(timeout=1_000_000)) == Failed("no answer in time")


def test_a_page_that_comes_slowly_and_steadily_is_waited_for(server, api, monkeypatch):
    """1 MB over a slow link takes longer than an answer may otherwise: here each look at the clock is 3 s later."""
    server.put(*(node(f"n{at}", "10.0.0.1", annotations={"x": "x" * 20_000}) for at in range(50)))
    moments = clock_of_looks(monkeypatch)
    monkeypatch.setattr(tested, "CHUNK", 5000)
    assert len(listed(api._replace(timeout=1_000_000)).items) == 50
    assert next(moments) > 2 * 60


def test_a_certificate_of_another_authority_is_not_trusted(api, clients):
    found = listed(api._replace(ca=clients.file))
    assert found.detail.startswith("its certificate is not trusted: ")


def test_a_certificate_of_another_name_is_not_trusted_unless_that_name_is_expected(api):
    assert "not valid for 'wrong.example'" in listed(api._replace(server_name="wrong.example")).detail
    assert isinstance(listed(api._replace(server_name="api.example")), Page)


def test_each_file_that_is_of_no_use_is_named(api, tmp_path):
    empty, missing = tmp_path / "empty", str(tmp_path / "missing")
    empty.write_text("")
    cases = {
        f"api.ca is {missing}: it cannot be read: no such file or directory": {"ca": missing},
        f"api.ca is {empty}: certificates in PEM are required there": {"ca": str(empty)},
        f"api.token is {missing}: it cannot be read: no such file or directory": {"token": missing},
        f"api.token is {empty}: there is no token in it": {"token": str(empty)},
        f"api.certificate is {missing}: it cannot be read": {"token": "", "certificate": missing},
        f"api.certificate is {api.ca}: a certificate in PEM and its key": {"token": "", "certificate": api.ca},
    }
    for sentence, change in cases.items():
        assert listed(api._replace(**change)).detail.startswith(sentence)


def test_a_token_of_several_lines_is_none(api, token):
    token.write_text(f"{TOKEN}\r\nX-Header: y")
    assert listed(api) == Failed(f"api.token is {token}: there is no token in it")


def test_nothing_is_left_open(server, api, no_leak):
    listed(api)
    server.away()
    listed(api)
    server.back()
