# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A log that never blocks."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import log


class Pipe:
    """A log, and what comes out at its other end."""

    def __init__(self, environ):
        self.reading, self.writing = os.pipe()
        found = os.fstat(self.writing)
        self.log = log.Log(self.writing, {key: value.format(found) for key, value in environ.items()})

    def read(self):
        os.set_blocking(self.reading, False)
        text = b""
        try:
            while True:
                text += os.read(self.reading, 1 << 20)
        except BlockingIOError:
            return text.decode().splitlines()

    def close(self):
        for descriptor in (self.reading, self.writing):
            os.close(descriptor)


@pytest.fixture
def pipes():
    made = []

    def make(**environ):
        made.append(Pipe(environ))
        return made[-1]

    yield make
    for pipe in made:
        pipe.close()


def test_a_message_is_one_line(pipes):
    pipe = pipes()
    pipe.log.info("front is Active")
    pipe.log.warning("two\nlines\ud800")
    assert pipe.read() == ["front is Active", "two lines\\ud800"]


def test_the_journal_gets_the_severity(pipes):
    pipe = pipes(JOURNAL_STREAM="{0.st_dev}:{0.st_ino}")
    pipe.log.info("a")
    pipe.log.warning("b")
    pipe.log.fault("key", "c")
    assert pipe.read() == ["<6>a", "<4>b", "<3>c"]


def test_another_stream_of_the_journal_is_none_of_ours(pipes):
    pipe = pipes(JOURNAL_STREAM="{0.st_dev}:1")
    pipe.log.info("a")
    assert pipe.read() == ["a"]


def test_a_fault_is_said_once_until_it_is_cured_whatever_its_words(pipes):
    pipe = pipes()
    pipe.log.cured("eth0", "eth0 never was down")
    for text in ("eth0 is down", "eth0 is down", "eth0 is gone"):
        pipe.log.fault("eth0", text)
    pipe.log.fault("eth1", "eth1 is down")
    for _again in range(2):
        pipe.log.cured("eth0", "eth0 is up")
    pipe.log.fault("eth0", "eth0 is gone")
    assert pipe.read() == ["eth0 is down", "eth1 is down", "eth0 is up", "eth0 is gone"]


def test_a_slow_reader_loses_messages_and_gets_their_number(pipes):
    pipe = pipes()
    for number in range(2000):  # would wait for ever
        pipe.log.info(f"message {number:04} {'x' * 80}")
    first = pipe.read()
    assert 0 < len(first) < 2000
    pipe.log.info("awake")
    assert pipe.read() == [f"{2000 - len(first)} messages are lost: they were not read in time.", "awake"]
    pipe.log.info("and on")
    assert pipe.read() == ["and on"]


def test_a_message_longer_than_a_pipe_takes_at_once_is_cut(pipes):
    pipe = pipes()
    pipe.log.info("x" * 100_000)
    pipe.log.info("next")
    first, second = pipe.read()
    assert len(first) == log.MAX_LINE - 1 and second == "next"


def test_a_reader_that_is_gone_is_no_fault():
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        lines = log.Log(ours.fileno(), {})
        lines.info("to nobody")
    lines.info("to nothing")
