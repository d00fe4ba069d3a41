# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the proxy's servers: a fast interval, each run reported, and checks because of a suspicion."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import runner, server
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Callbacks, ChecksProcess
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.outcome import Outcome, Probe
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import TCP, Check
from support.agent.loops import SECOND, Time, run_until
from support.agent.servers import Server, silent


class Recorded(Probe):
    """Returns a prepared outcome, and records when it ran."""

    def __init__(self, time):
        self.time, self.runs, self.good = time, [], True

    def start(self, done):
        self.runs.append(self.time.now() / SECOND)
        done(Outcome(self.good, "by itself"))

    def stop(self):
        pass


class Case:
    def __init__(self, monkeypatch, **fields):
        self.time, self.results, self.ran = Time(), [], []
        self.probe = Recorded(self.time)
        monkeypatch.setattr(runner, "probe_of", lambda *_arguments: self.probe)
        check = Check("name", TCP, **{"interval": 4 * SECOND, "rise": 2, "fall": 3, **fields})
        self.watch = runner.CheckRunner(
            self.time, check, None, lambda up, _value, why, _known: self.results.append((up, why)), self.ran.append
        )

    def advance(self, seconds):
        self.time.advance(round(seconds * SECOND))


@pytest.fixture
def case(monkeypatch):
    return lambda **fields: Case(monkeypatch, **fields)


def test_on_its_way_down_and_up_a_check_runs_at_the_fast_interval(case):
    check = case(fast_interval=SECOND)
    check.advance(4)
    check.probe.good = False
    check.advance(5.5)
    assert check.results == [(True, "by itself")]
    check.advance(1)
    assert check.results[1:] == [(False, "by itself")]
    check.probe.good = True
    check.advance(13)
    assert check.results[2:] == [(True, "by itself")]
    assert check.probe.runs == [0, 4, 8, 9, 10, 14, 15, 19, 23]


def test_without_a_fast_interval_it_runs_as_always(case):
    check = case()
    check.probe.good = False
    check.advance(12)
    assert check.probe.runs == [0, 4, 8, 12]


def test_a_suspected_target_is_checked_at_once(case):
    check = case(fall=2)
    check.advance(1)
    check.watch.suspect()
    check.advance(0)
    assert check.probe.runs == [0, 1] and check.results == [(True, "by itself")]


def test_however_often_it_is_suspected_only_failed_runs_in_their_turn_make_it_down(case):
    check = case(fall=3)
    check.advance(1)
    for _each in range(5):
        check.watch.suspect()
        check.advance(0)
    assert check.results == [(True, "by itself")]
    check.probe.good = False
    for _each in range(7):
        check.watch.suspect()
        check.advance(1)
    assert check.probe.runs[-2:] == [1, 5] and check.results == [(True, "by itself")]
    check.advance(1)
    assert check.probe.runs[-1] == 9 and check.results[1:] == [(False, "by itself")]


def test_a_suspicion_of_what_is_down_already_is_ignored(case):
    check = case(fall=1)
    check.probe.good = False
    check.advance(0)
    check.watch.suspect()
    check.advance(1)
    assert check.results == [(False, "by itself")] and check.probe.runs == [0]


def test_each_run_is_reported_with_every(case):
    check = case(every=True)
    check.advance(4)
    check.probe.good = False
    check.advance(12)
    found = [(outcome.success, outcome.detail) for outcome in check.ran]
    assert found == [(True, "by itself")] * 2 + [(False, "by itself")] * 3
    assert check.results == [(True, "by itself"), (False, "by itself")]


def test_runs_are_not_reported_unless_the_check_has_every(case):
    check = case()
    check.advance(10)
    assert check.ran == [] and len(check.probe.runs) == 3


def test_a_master_that_does_not_read_gets_no_old_runs_later(loop, monkeypatch):
    monkeypatch.setattr(server, "Children", lambda _loop: None)
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    checks = server.Server(loop, ours)
    with theirs, ours:
        checks._execute(["add", 1, Check("web/a", TCP, every=True)])
        for _each in range(2000):
            checks._runners[1]._count(Outcome(True))
        assert checks._channel.behind and len(checks._channel._unsent) == 1
        checks._drop(1)


def test_a_suspicion_reaches_the_checks_process(loop):
    found, ran = [], []
    callbacks = Callbacks(found.append, pytest.fail, ran.append)
    checks = ChecksProcess(loop, callbacks, "checks", server.serve)
    checks.start()
    try:
        with Server(silent) as target:
            check = Check("web/a", TCP, address="127.0.0.1", port=target.port, interval=60 * SECOND, fall=1, rise=1)
            check = check._replace(every=True)
            checks.apply([check], "")
            run_until(loop, lambda: len(ran) == 1)
            checks.suspect("web/b")  # which is not known
            checks.suspect("web/a")
            run_until(loop, lambda: len(ran) == 2)
    finally:
        checks.stop()
    assert [(each.up, each.detail) for each in found] == [(True, "connected")]
