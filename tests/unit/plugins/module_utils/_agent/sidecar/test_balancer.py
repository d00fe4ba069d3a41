# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the sidecar does when the balancer starts, stops and dies."""

from __future__ import annotations

import os
import shlex

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.log import Log
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import balancer
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar.config import Balancer
from support.agent import servers
from support.agent.loops import run_until

UNUSED = 1  # the port of tcpmux, which nobody serves
READY = servers.answering(b"HTTP/1.0 200 OK\r\n\r\n")


class Host:
    """A balancer's container, and the sidecar that watches it."""

    def __init__(self, loop, folder, port):
        self.loop, self.fifo, self.down_file, self.done = (
            loop,
            folder / "fifo",
            folder / "run" / "down",
            folder / "done",
        )
        write = f"echo %s $(cat {shlex.quote(str(self.down_file))}) >> {shlex.quote(str(self.done))}"
        commands = [(("/bin/sh", "-c", write % word),) for word in ("start", "stop")]
        settings = Balancer(str(self.fifo), port, "/ready", str(self.down_file), *commands)
        self.watch = balancer.BalancerWatch(loop, settings, Log(os.open(os.devnull, os.O_WRONLY)))

    def is_down(self, expected):
        run_until(self.loop, lambda: self.down_file.read_text() == f"{expected}\n")

    def has_done(self, *lines):
        run_until(self.loop, lambda: self.done.exists() and self.done.read_text().splitlines() == list(lines))

    def starts(self):
        self.holder = os.open(self.fifo, os.O_RDWR)
        os.write(self.holder, b"started\n")

    def is_stopping(self):
        os.write(self.holder, b"stopping\n")

    def ends(self):
        os.close(self.holder)


@pytest.fixture
def host(loop, tmp_path):
    with servers.Server(READY) as server:
        host = Host(loop, tmp_path, server.port)
        host.watch.start()
        yield host
        host.watch.end()


def test_without_a_balancer_it_is_down_from_the_beginning(host):
    assert host.down_file.read_text() == "1\n"
    host.has_done("stop 1")


def test_it_is_up_once_it_answers_and_the_commands_come_before(host):
    host.starts()
    host.is_down(0)
    host.has_done("stop 1", "start 1")
    host.ends()


def test_its_death_shows_at_once_and_the_router_learns_of_it_before_the_commands(host):
    host.starts()
    host.is_down(0)
    host.ends()
    host.is_down(1)
    host.has_done("stop 1", "start 1", "stop 1")


def test_one_that_stops_is_down_while_it_still_runs(host):
    host.starts()
    host.is_down(0)
    host.is_stopping()
    host.is_down(1)
    host.ends()


def test_a_start_that_follows_an_end_unseen_counts_as_both(host):
    host.starts()
    host.is_down(0)
    os.write(host.holder, b"started\n")
    host.has_done("stop 1", "start 1", "stop 1", "start 1")
    host.is_down(0)
    host.ends()


def test_while_it_does_not_answer_it_stays_down_and_it_is_asked_again(loop, tmp_path):
    host = Host(loop, tmp_path, UNUSED)
    host.watch.start()
    host.starts()
    asked = []
    ask = host.watch._probe.start
    host.watch._probe.start = lambda done: (asked.append(done), ask(done))
    run_until(loop, lambda: len(asked) > 2)
    assert host.down_file.read_text() == "1\n"
    with servers.Server(READY) as server:
        host.watch._probe._port = server.port
        host.is_down(0)
    host.ends()
    host.is_down(1)
    host.watch.end()


def test_a_command_that_is_missing_or_fails_does_not_keep_the_next_one_from_running(loop, tmp_path):
    done = tmp_path / "done"
    heard = []

    class Said:
        warning = heard.append

    balancer.run([("/there/is/none",), ("/bin/sh", "-c", "echo no >&2; exit 3"), ("/bin/touch", str(done))], Said())
    assert done.exists()
    assert [line.endswith("has failed with 3: no\n") for line in heard] == [False, True]


def test_without_a_track_file_the_commands_run_all_the_same(loop, tmp_path):
    done = tmp_path / "done"
    settings = Balancer(str(tmp_path / "fifo"), 1, "/", "", (), (("/bin/touch", str(done)),))
    watch = balancer.BalancerWatch(loop, settings, Log(os.open(os.devnull, os.O_WRONLY)))
    watch.start()
    assert done.exists()
    watch.end()
