# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages between two processes: whole, in order, and never waited for."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.ipc import Channel
from support.agent.loops import SECOND, run_until


class End:
    def __init__(self, loop, end):
        self.heard, self.ended = [], False
        self.channel = Channel(loop, end, self.heard.append, self._end)

    def _end(self):
        self.ended = True


@pytest.fixture
def ends():
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield ends
    for end in ends:
        end.close()


def test_messages_arrive_whole_and_in_order_both_ways(loop, ends):
    here, there = (End(loop, end) for end in ends)
    here.channel.send("add", 1, {"name": "\u00fc"})
    here.channel.send("drop", 1)
    there.channel.send("say", "x" * 10_000)
    run_until(loop, lambda: len(there.heard) == 2 and here.heard)
    assert there.heard == [["add", 1, {"name": "\u00fc"}], ["drop", 1]]
    assert here.heard == [["say", "x" * 10_000]]


def test_what_the_other_end_does_not_take_is_kept_until_it_does(loop, ends):
    here = End(loop, ends[0])
    for number in range(5000):
        here.channel.send(number)
    there = End(loop, ends[1])
    run_until(loop, lambda: len(there.heard) == 5000)
    assert there.heard == [[number] for number in range(5000)]


def test_a_queue_that_has_been_emptied_costs_nothing(loop, ends, monkeypatch):
    """To be ready for writing is no news when there is nothing to write."""
    rounds, ready = [], Channel._ready

    def count(channel, events):
        rounds.append(events)
        ready(channel, events)

    monkeypatch.setattr(Channel, "_ready", count)
    here = End(loop, ends[0])
    for number in range(5000):
        here.channel.send(number)
    there = End(loop, ends[1])
    run_until(loop, lambda: len(there.heard) == 5000)
    rounds.clear()
    late = loop.now() + SECOND // 50
    run_until(loop, lambda: loop.now() > late)
    assert rounds == []


def test_the_end_is_reported_after_the_last_message(loop, ends):
    here, there = (End(loop, end) for end in ends)
    here.channel.send("last")
    here.channel.close()
    run_until(loop, lambda: there.ended)
    assert there.heard == [["last"]]


def test_a_message_without_a_receiver_is_lost_without_a_fault(loop, ends):
    here, there = (End(loop, end) for end in ends)
    there.channel.close()
    here.channel.send("lost")
    run_until(loop, lambda: here.ended)
    here.channel.send("lost too")
    here.channel.close()


def test_at_the_end_everything_is_sent_and_the_other_side_may_still_answer(loop, ends):
    """Even if some of its messages have not been read: to close with these would take ours away from it."""
    here, there = (End(loop, end) for end in ends)
    there.channel.send("unread")
    for number in range(10):
        here.channel.send(number)
    here.channel.finish(1.0)
    there.channel.send("answer")
    run_until(loop, lambda: there.ended)
    assert there.heard == [[number] for number in range(10)]
    assert here.heard == [["unread"], ["answer"]]


def test_at_the_end_who_takes_nothing_is_not_waited_for_long(loop, ends):
    here = End(loop, ends[0])
    for number in range(5000):
        here.channel.send(number)
    before = loop.now()
    here.channel.finish(0.1)
    assert loop.now() - before > SECOND // 20
