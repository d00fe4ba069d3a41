# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol of lists and watches, as transcripts: an outcome, the news, the next request."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import nodes, watching
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.watching import (
    Changed,
    Connected,
    Ended,
    Failed,
    Interrupted,
    Listed,
    Page,
    PageRequest,
    Refused,
    Removed,
    Silent,
    Trouble,
    Unusable,
    Wait,
    Waited,
    Watching,
    WatchRequest,
)
from support.follow.nodes import node

CUT = Failed("connection reset")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def client(servers=2, clock=None):
    return Watching(servers, chance=lambda: 1.0, clock=clock or Clock())


def watching_from(version, servers=2, clock=None):
    """Return a client that has read a list and now watches."""
    found = client(servers, clock)
    found.after(Page([], version, ""))
    return found


def event(kind, name, version):
    return {"type": kind, "object": node(name, "10.0.0.1", version=version)}


def test_a_list_is_read_in_pages_and_watched_from_its_version_on():
    it = client()
    assert it.request == PageRequest(0)
    assert it.after(Page([node("a", "10.0.0.1")], "7", "more")) == []
    assert it.request == PageRequest(0, "more")
    a, b = (nodes.read(node(name, "10.0.0.1")) for name in "ab")
    assert it.after(Page([node("b", "10.0.0.1")], "7", "")) == [Listed((a, b))]
    assert it.request == WatchRequest(0, "7")


def test_a_watch_is_resumed_behind_its_last_line_which_may_be_a_bookmark():
    it = watching_from("7")
    assert it.line(event("ADDED", "a", "8")) == [Changed(nodes.read(node("a", "10.0.0.1")))]
    assert it.line(event("DELETED", "a", "9")) == [Removed("a")]
    assert it.line({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}) == [Connected(0)]
    assert it.after(Ended(900.0)) == []
    assert it.request == WatchRequest(0, "20")


def test_a_watch_lasts_until_the_next_list_which_comes_whatever_the_watch_says():
    """It cannot tell what a restored etcd no longer has."""
    clock = Clock()
    it = watching_from("7", clock=clock)
    for _list in range(3):
        assert it.request == WatchRequest(0, "7", 600)
        clock.now += 600
        assert it.after(Ended(600.0)) == []
        assert it.request == PageRequest(0)
        assert it.after(Page([], "7", "")) == [Listed(())]


def test_a_list_that_fails_is_tried_again_after_a_minute_and_the_watch_goes_on_meanwhile():
    clock = Clock()
    it = watching_from("7", servers=1, clock=clock)
    for _list in range(3):
        clock.now += it.request.seconds
        it.after(Ended(float(it.request.seconds)))
        assert it.request == PageRequest(0)
        assert it.after(Refused(429)) == [Trouble(0, Refused(429))]
        it.after(Waited())
        assert it.request == WatchRequest(0, "7", 60)


def test_a_watch_without_a_line_is_dead_and_the_next_api_server_is_asked_for_a_list():
    clock = Clock()
    it = watching_from("7", clock=clock)
    assert it.after(Silent()) == [Trouble(0, Silent())]
    assert it.request == PageRequest(1)
    it.after(Page([], "9", ""))
    clock.now += 600
    it.after(Ended(600.0))
    assert it.request == PageRequest(1)  # the other one comes first no more, for an hour
    it.after(CUT)
    assert it.request == WatchRequest(0, "9", 60)
    it.after(CUT)
    assert it.request == Wait(1.0)
    clock.now += 3600
    it.after(Waited())
    assert it.request == PageRequest(0)


def test_an_api_server_whose_watch_was_dead_answers_again_with_its_next_line():
    """That it accepts another one says nothing, and is said by nobody: its fault stays in the status."""
    it = watching_from("7", servers=1)
    it.after(Silent())
    assert it.after(Page([], "7", "")) == [Listed(())]
    assert it.opened() == []
    assert it.line({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}}) == [Connected(0)]
    assert it.opened() == [Connected(0)]
    it.after(Silent())
    assert it.line(event("MODIFIED", "a", "9"))[0] == Connected(0)


def test_after_a_watch_without_a_line_an_only_api_server_is_asked_for_a_list_at_once():
    it = watching_from("7", servers=1)
    it.after(Silent())
    assert it.request == PageRequest(0)


@pytest.mark.parametrize("kind", ["MODIFIED", "BOOKMARK"])
def test_versions_that_go_back_need_a_new_list_at_once(kind):
    it = watching_from("70")
    with pytest.raises(Unusable) as unusable:
        it.line(event(kind, "a", "8"))
    assert it.after(unusable.value.outcome) == []
    assert it.request == PageRequest(0)


def test_versions_that_are_no_numbers_are_only_passed_on():
    it = watching_from("b-7")
    it.line(event("MODIFIED", "a", "a-8"))
    it.after(Ended(5.0))
    assert it.request == WatchRequest(0, "a-8")


@pytest.mark.parametrize("as_a_line", [False, True])
def test_an_expired_version_needs_a_new_list_at_once(as_a_line):
    it = watching_from("7")
    outcome = Refused(410, "too old")
    if as_a_line:
        with pytest.raises(Unusable) as unusable:
            it.line({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})
        assert unusable.value.outcome == outcome
    assert it.after(outcome) == []
    assert it.request == PageRequest(0)


def test_versions_that_expire_again_and_again_are_slowed_down():
    it = watching_from("7", servers=1)
    it.after(Refused(410))
    it.after(Page([], "8", ""))
    assert it.after(Refused(410)) == [Trouble(0, Refused(410))]
    assert it.request == Wait(1.0)
    it.after(Waited())
    assert it.request == PageRequest(0)


def test_a_page_that_has_expired_begins_the_list_again():
    it = client()
    it.after(Page([node("a", "10.0.0.1")], "7", "more"))
    it.after(Refused(410))
    assert it.request == PageRequest(0)
    assert it.after(Page([], "9", "")) == [Listed(())]


def test_a_version_that_an_api_server_does_not_know_yet_needs_a_new_list():
    it = watching_from("7")
    assert it.after(Refused(504, "Too large resource version")) == []
    assert it.request == PageRequest(0)


def test_a_401_is_tried_once_more_with_credentials_that_are_read_anew():
    it = watching_from("7", servers=1)
    assert it.after(Refused(401)) == []
    assert it.request == WatchRequest(0, "7")
    assert it.after(Refused(401)) == [Trouble(0, Refused(401))]
    assert it.request == Wait(1.0)
    it.after(Waited())
    assert it.request == WatchRequest(0, "7")  # no new list
    assert it.after(Refused(401)) == []  # and it is tried twice again


def test_the_next_api_server_is_tried_at_once_and_the_first_one_again_after_the_delay():
    it = watching_from("7")
    assert it.after(CUT) == [Trouble(0, CUT)]
    assert it.request == WatchRequest(1, "7")
    assert it.after(CUT) == [Trouble(1, CUT)]
    assert it.request == Wait(1.0)
    it.after(Waited())
    assert it.request == WatchRequest(0, "7")
    it.after(CUT)
    assert it.opened() == [Connected(1)]


def test_a_watch_at_the_second_api_server_returns_to_the_first_when_it_ends():
    clock = Clock()
    it = watching_from("7", clock=clock)
    it.after(CUT)
    clock.now += 600
    it.after(Ended(600.0))
    assert it.request == PageRequest(0)


@pytest.mark.parametrize("cut", ["", "the connection was cut"])
def test_a_watch_that_ends_early_is_resumed_at_once_at_its_server(cut):
    """A limit on idle connections cuts it again and again. The first API server may be the one that does not answer."""
    it = watching_from("7", clock=(clock := Clock()))
    it.after(CUT)
    for _cut in range(29):
        clock.now += 20
        it.after(Ended(20.0, cut))
        assert it.request == WatchRequest(1, "7", 600 - int(clock.now))


def test_that_a_watch_ends_early_is_said_once_an_hour():
    it, said = watching_from("7", clock=(clock := Clock())), []
    while clock.now < 3700:
        clock.now += 20
        said += it.after(Ended(20.0, "cut"))
        if isinstance(it.request, PageRequest):
            it.after(Page([], "7", ""))
    assert said == [Interrupted(0, Ended(20.0, "cut"))] * 2


def test_a_list_and_a_watch_that_are_accepted_end_the_back_off():
    it = watching_from("7", servers=1)
    delays(it, Refused(503), 5)
    it.after(Ended(5.0, "cut"))
    assert delays(it, CUT, 1) == [1]
    it = client(1)
    delays(it, Refused(503), 5)
    it.after(Page([], "7", ""))
    assert delays(it, CUT, 1) == [1]


def test_lists_whose_watches_are_of_no_use_are_slowed_down():
    it, found = client(1), []
    for _time in range(4):
        it.after(Page([], "7", ""))
        with pytest.raises(Unusable) as unusable:
            it.line({"type": "nonsense"})
        it.after(unusable.value.outcome)
        found.append(it.request.seconds)
        it.after(Waited())
        assert it.request == PageRequest(0)
    assert found == [1, 2, 4, 8]


def delays(it, outcome, times):
    found = []
    for _time in range(times):
        it.after(outcome)
        assert isinstance(it.request, Wait)
        found.append(it.request.seconds)
        it.after(Waited())
    return found


def test_failures_in_a_row_are_tried_less_and_less_often_and_a_line_ends_that():
    it = watching_from("7", servers=1)
    assert delays(it, CUT, 8) == [1, 2, 4, 8, 16, 30, 30, 30]
    it.line(event("MODIFIED", "a", "8"))
    assert delays(it, CUT, 1) == [1]


def test_the_delay_is_partly_chance():
    it = Watching(1, chance=lambda: 0.0)
    assert delays(it, CUT, 3) == [0.5, 1, 2]


def test_a_watch_that_ends_at_once_has_failed():
    it = watching_from("7", servers=1)
    assert delays(it, Ended(0.9), 3) == [1, 2, 4]


def test_the_api_server_may_ask_for_a_longer_delay():
    assert delays(client(1), Refused(429, retry_after=12.0), 1) == [12]
    assert delays(client(1), Refused(429, retry_after=9999.0), 1) == [30]


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_another_refusal_keeps_the_version(status):
    it = watching_from("7")
    assert it.after(Refused(status)) == [Trouble(0, Refused(status))]
    assert it.request == WatchRequest(1, "7")


@pytest.mark.parametrize(
    "line", [None, 7, {}, {"type": "ADDED"}, {"type": "X", "object": node("a")}, event("ADDED", "a b", "8")]
)
def test_a_line_that_makes_no_sense_ends_the_watch_and_needs_a_list(line):
    it = watching_from("7")
    with pytest.raises(Unusable) as unusable:
        it.line(line)
    assert len(it.after(unusable.value.outcome)) == 1
    assert it.request == PageRequest(1)


@pytest.mark.parametrize("document", [None, [], {"items": []}, {"items": 7, "metadata": {}}, {"kind": "Status"}])
def test_what_is_no_list_is_said_to_be_none(document):
    assert watching.page_of(document) == Failed("the answer is not a list of nodes")


def test_an_empty_list_may_be_null():
    empty = {"kind": "NodeList", "items": None, "metadata": {"resourceVersion": "7"}}
    assert watching.page_of(empty) == Page([], "7", "")


def test_a_list_without_a_version_or_with_other_items_changes_nothing():
    assert client().after(Page([], "", "")) == [Trouble(0, Failed("the list has no resourceVersion"))]
    assert client().after(Page([{}], "7", "")) == [Trouble(0, Failed("the list has a node without a name"))]
