# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One check: what is told of what its runs find out."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import runner
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.network import NetworkProbe
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.outcome import Outcome, Probe
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import FILE, PROCESS, TCP, Check
from support.agent.loops import SECOND, Time


class Told(Probe):
    """Finds what it was told to find."""

    def __init__(self, time):
        self.time, self.runs, self.next = time, 0, Outcome(True)

    def start(self, done):
        self.runs += 1
        done(self.next)

    def stop(self):
        pass


class Case:
    def __init__(self, monkeypatch, check, up=None):
        self.time = Time()
        self.probe = Told(self.time)
        self.results = []

        def probe_of(_loop, _check, _children, look_now):
            self.news = look_now
            return self.probe

        monkeypatch.setattr(runner, "probe_of", probe_of)
        self.watch = runner.CheckRunner(self.time, check, None, self._take, None, up)

    def _take(self, up, value, detail, known):
        self.results.append((up, value, detail) if known else (up, value, detail, "not known"))

    def finds(self, success, detail="", value=0, known=True):
        """Let one more regular run pass; return what was told of it."""
        self.probe.next = Outcome(success, detail, 0, value, known)
        before = len(self.results)
        self.time.advance(0 if not self.probe.runs else 2 * SECOND)
        return self.results[before:]


@pytest.fixture
def case(monkeypatch):
    return lambda up=None, **fields: Case(monkeypatch, Check("name", **{"type": TCP, **fields}), up)


@pytest.mark.parametrize("success", [True, False])
def test_the_first_run_is_reported_at_once(case, success):
    assert case(rise=3, fall=3).finds(success, "because") == [(success, 0, "because")]


def test_an_inherited_state_takes_as_many_runs_as_ever_to_change(case):
    check = case(True, rise=2, fall=3)
    assert check.finds(False) == check.finds(False) == []
    assert check.finds(False, "third failure") == [(False, 0, "third failure")]
    assert case(False, rise=1).finds(False, "still") == [(False, 0, "still")]


def test_only_a_change_is_reported(case):
    check = case(rise=2, fall=3)
    assert check.finds(True, "first") == [(True, 0, "first")]
    assert check.finds(True) == []
    assert check.finds(False) == []
    assert check.finds(False) == []
    assert check.finds(False, "third failure") == [(False, 0, "third failure")]
    assert check.finds(False) == []
    assert check.finds(True) == []
    assert check.finds(False) == []
    assert check.finds(True) == []
    assert check.finds(True, "second success") == [(True, 0, "second success")]


def test_a_number_counts_at_once_whatever_rise_and_fall_are(case):
    check = case(type=FILE, rise=5, fall=5)
    assert check.finds(True, "", 0) == [(True, 0, "")]
    assert check.finds(False, "", 1) == [(False, 1, "")]
    assert check.finds(False, "", 2) == [(False, 2, "")]
    assert check.finds(False, "", 2) == []
    assert check.finds(True, "empty", 0) == [(True, 0, "empty")]


def test_what_says_nothing_of_the_target_is_told_and_so_is_the_next_run_that_does(case):
    check = case(type=FILE)
    assert check.finds(True, "", 0) == [(True, 0, "")]
    assert check.finds(True, "empty", 0, known=False) == [(True, 0, "empty", "not known")]
    assert check.finds(True, "no such file", 0, known=False) == []
    assert check.finds(True, "", 0) == [(True, 0, "")]
    other = case(fall=2)
    other.finds(True)
    assert other.finds(False, "cannot run it", known=False) == []
    assert other.finds(False, "cannot run it", known=False) == [(False, 0, "cannot run it", "not known")]
    assert other.finds(False, "exit code 1") == [(False, 0, "exit code 1")]


def test_news_are_looked_at_at_once_and_as_often_as_fall_wants(case):
    """The death of a process is certain: nothing is gained by waiting for the interval."""
    check = case(type=PROCESS, fall=3)
    check.finds(True)
    check.probe.next = Outcome(False, "no process")
    check.news()
    check.time.advance(0)
    assert check.probe.runs == 4
    assert check.results[1:] == [(False, 0, "no process")]
    check.time.advance(SECOND)
    assert check.probe.runs == 4


def test_news_that_change_nothing_cost_one_run(case):
    check = case(type=PROCESS, fall=3)
    check.finds(True)
    check.news()
    check.time.advance(SECOND)
    assert check.probe.runs == 2
    assert len(check.results) == 1


def test_without_news_a_failure_waits_for_the_next_run(case):
    check = case(type=PROCESS, fall=2)
    check.finds(True)
    check.news()
    check.time.advance(0)
    assert check.finds(False) == []
    check.time.advance(SECOND)
    assert len(check.results) == 1


def test_nothing_is_reported_after_the_end(case):
    check = case()
    check.finds(True)
    check.watch.stop()
    assert check.finds(False) == []


@pytest.mark.parametrize(
    "fields, line",
    [
        ({"type": "http", "port": 80}, b"Host: 192.0.2.1\r\n"),
        ({"type": "http", "port": 443}, b"Host: 192.0.2.1:443\r\n"),
        ({"type": "https", "port": 443, "host": "site.example"}, b"Host: site.example\r\n"),
        ({"type": "https", "port": 80, "host": "site.example"}, b"Host: site.example:80\r\n"),
    ],
)
def test_the_host_is_the_address_where_no_other_is_given(monkeypatch, fields, line):
    asked = []
    monkeypatch.setattr(
        "ansible_collections.onprem.lb.plugins.module_utils._agent.checks.http.dialogue",
        lambda *what: asked.append(what),
    )
    check = Check("name", address="192.0.2.1", path="/ready", status=("200-299",), **fields)
    assert isinstance(runner.probe_of(None, check, None, None), NetworkProbe)
    host, *rest = asked[0]
    assert (f"Host: {host}\r\n".encode(), rest) == (line, ["/ready", ("200-299",), "GET"])
