# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports on many servers come from processes of their own, so that monitors answer meanwhile."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.rendering import MANY, MAX_RUNNING, Renderer
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import background
from support.agent.loops import SECOND, run_until
from support.waiting import until


@pytest.fixture
def renderer(loop):
    renderer = Renderer(loop)
    renderer.servers = MANY
    yield renderer
    run_until(loop, lambda: not renderer.pids)


def own_pid():
    return b"%d" % os.getpid()


def test_of_few_servers_it_is_rendered_at_once(renderer):
    renderer.servers = MANY - 1
    assert renderer.answer(own_pid) == own_pid()


def test_of_many_servers_it_is_rendered_elsewhere(loop, renderer):
    replies = []
    renderer.answer(own_pid)(replies.append)
    (pid,) = renderer.pids
    run_until(loop, lambda: replies)
    assert replies == [b"%d" % pid]


def test_the_loop_does_not_wait_for_it(loop, renderer, tmp_path):
    """It is rendered only after a timer of the loop has run."""
    replies, sign = [], tmp_path / "sign"
    renderer.answer(lambda: until(sign.exists) and b"late")(replies.append)
    loop.after(SECOND // 10, sign.touch)
    run_until(loop, sign.exists)
    run_until(loop, lambda: replies)


def test_more_requests_than_it_can_answer_get_an_empty_answer_at_once(loop, renderer):
    replies = []
    for _each in range(MAX_RUNNING + 2):
        renderer.answer(lambda: b"late")(replies.append)
    assert replies == [b""] * 2
    run_until(loop, lambda: len(replies) == MAX_RUNNING + 2)


def test_without_another_process_it_is_rendered_here(renderer, monkeypatch):
    def fail(*_arguments):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(background, "Forked", fail)
    replies = []
    renderer.answer(own_pid)(replies.append)
    assert replies == [own_pid()] and renderer.pids == []


def test_a_part_of_an_answer_is_not_sent(loop, renderer, monkeypatch):
    def write_a_part(self, compute_result):
        os.write(self._memory, compute_result[:3])
        os.abort()

    monkeypatch.setattr(background.Background, "_write", write_a_part)
    replies = []
    renderer.answer(lambda: b"a whole page")(replies.append)
    run_until(loop, lambda: replies)
    assert replies == [b""]
