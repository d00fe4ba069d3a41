# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The FIFO by which the sidecar learns that a container's first process has ended."""

from __future__ import annotations

import os
import select

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar.fifo import ENDED, HELD, Fifo
from support.agent.loops import Time, run_until


class Holder:
    """Holds a FIFO open, as a container's first process does."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_RDWR)

    def says(self, line):
        os.write(self.descriptor, f"{line}\n".encode())

    def ends(self):
        os.close(self.descriptor)


@pytest.fixture
def heard(loop, tmp_path):
    """What is heard of a FIFO that is open here, with the FIFO's path in ``.path``."""

    class Heard(list):
        path = tmp_path / "folder" / "fifo"

        def until(self, *lines):
            run_until(loop, lambda: self == list(lines))

    heard = Heard()
    fifo = Fifo(loop, str(heard.path), heard.append)
    fifo.open()
    heard.fifo = fifo
    yield heard
    fifo.close()


def test_it_is_created_and_nobody_holds_it(heard):
    assert heard.path.is_fifo()
    assert heard == [] and not heard.fifo.is_held


def test_a_line_and_the_end_are_heard(heard):
    holder = Holder(heard.path)
    holder.says("started")
    heard.until("started")
    assert heard.fifo.is_held
    holder.ends()
    heard.until("started", ENDED)
    assert not heard.fifo.is_held


def test_the_next_holder_is_heard_too(heard):
    for lives in (1, 2, 3):
        holder = Holder(heard.path)
        holder.says("started")
        holder.ends()
        heard.until(*["started", ENDED] * lives)


def test_the_loop_sleeps_after_an_end(tmp_path):
    loop, heard = Time(), []
    fifo = Fifo(loop, str(tmp_path / "fifo"), heard.append)
    fifo.open()
    holder = Holder(tmp_path / "fifo")
    holder.says("started")
    holder.ends()
    while ENDED not in heard:
        loop.is_ready(*loop.watched)
    assert len(loop.watched) == 1
    assert select.select(list(loop.watched), [], [], 0)[0] == []
    fifo.close()


def test_a_holder_of_before_is_known_though_it_says_nothing(loop, tmp_path):
    path, heard = tmp_path / "fifo", []
    os.mkfifo(path)
    holder = Holder(path)
    fifo = Fifo(loop, str(path), heard.append)
    fifo.open()
    assert heard == [HELD] and fifo.is_held
    holder.ends()
    run_until(loop, lambda: heard == [HELD, ENDED])
    fifo.close()


def test_what_was_said_before_is_heard(loop, tmp_path):
    path, heard = tmp_path / "fifo", []
    os.mkfifo(path)
    holder = Holder(path)
    holder.says("started")
    fifo = Fifo(loop, str(path), heard.append)
    fifo.open()
    assert heard == ["started"]
    fifo.close()
    holder.ends()
