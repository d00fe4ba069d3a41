# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How keepalived is asked, and what stands in the way."""

from __future__ import annotations

import os
import signal

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import keepalived
from support.vrrp.keepalived_dumps import DATA, STATISTICS

PID = 4711


class Daemon:
    """A keepalived that writes its files when it gets a signal, at once."""

    def __init__(self, folder, answers):
        self.folder, self.answers, self.signals = folder, answers, []

    def __call__(self, pid, number):
        assert pid == PID
        self.signals.append(number)
        for name, text in self.answers.get(number, {}).items():
            (self.folder / name).write_text(text)


ANSWERS = {
    signal.SIGUSR1: {"keepalived.data": DATA, "keepalived_parent.data": "secret"},
    signal.SIGUSR2: {"keepalived.stats": STATISTICS},
}


@pytest.fixture
def asked(tmp_path):
    def ask(answers=None, pid=PID):
        ask.daemon = Daemon(tmp_path, ANSWERS if answers is None else answers)
        return keepalived.Keepalived(lambda: pid, ask.daemon, str(tmp_path), within=0.1).report()

    return ask


def test_it_asks_for_the_data_first_and_leaves_no_file(asked, tmp_path):
    (tmp_path / "keepalived.data").write_text("of before")
    assert [each["state"] for each in asked()["instances"]] == ["Backup", "Active"]
    assert asked.daemon.signals == [signal.SIGUSR1, signal.SIGUSR2]
    assert list(tmp_path.iterdir()) == []


def test_one_that_does_not_serve_gets_no_signal(asked):
    assert asked(pid=0) is None
    assert asked.daemon.signals == []


def test_one_that_writes_nothing_is_named(asked, tmp_path):
    with pytest.raises(keepalived.Refused, match=f"keepalived has not written {tmp_path}/keepalived.data within 0.1 s"):
        asked({})


def test_a_file_that_stays_incomplete_is_not_believed(asked, tmp_path):
    half = {**ANSWERS, signal.SIGUSR2: {"keepalived.stats": STATISTICS[:-40]}}
    with pytest.raises(keepalived.Refused, match=r"keepalived\.stats within"):
        asked(half)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_user_is_not_believed(asked, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(keepalived.Refused, match=r"keepalived\.data is another user's: remove it"):
        asked()


def test_a_link_is_not_followed(asked, tmp_path):
    (tmp_path / "elsewhere").write_text(DATA)

    def link(_pid, _number):
        (tmp_path / "keepalived.data").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(keepalived.Refused, match="keepalived cannot be asked: .*symbolic links"):
        keepalived.Keepalived(lambda: PID, link, str(tmp_path), within=0.1).report()


def test_systemd_says_whether_it_serves(monkeypatch, tmp_path):
    for state, expected in (("active", 812), ("activating", 0), ("inactive", 0)):
        (tmp_path / "systemctl").write_text(f"#!/bin/sh\necho ActiveState={state}; echo MainPID=812\n")
        (tmp_path / "systemctl").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert keepalived.main_pid() == expected
