# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The balancers are kept at their servers: at once, after a fault, each minute."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import balancers
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.changes import Applied, Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import (
    Api,
    Nodes,
    Proxy,
    Server,
    Settings,
    Target,
)
from support.agent.loops import SECOND, Time

LABEL = Nodes().label
A, B = Server("a", "10.0.0.1"), Server("b", "10.0.0.2")


class Balancer:
    """One that does what the test says, and remembers when it was called with what."""

    def __init__(self, time) -> None:
        self.time, self.calls, self.wrong, self.draining = time, [], None, False
        self.checked = []

    def written(self):
        return self.calls[-1][1] if self.calls else []

    def answering(self):
        if self.wrong:
            raise Refused(self.wrong)
        return self.checked

    def apply(self, wanted):
        self.calls.append((self.time.now() // SECOND, list(wanted)))
        if self.wrong:
            raise Refused(self.wrong)
        return Applied([f"{len(wanted)} servers"] if len(self.calls) == 1 else [], self.draining)


class Log:
    def __init__(self) -> None:
        self.lines, self.faults = [], set()

    def info(self, line):
        self.lines.append(line)

    def fault(self, key, line):
        if key not in self.faults:
            self.faults.add(key)
            self.lines.append(line)

    def cured(self, key, line):
        if key in self.faults:
            self.faults.remove(key)
            self.lines.append(line)


class Case:
    def __init__(self, monkeypatch, *more) -> None:
        self.time, self.log = Time(), Log()
        self.balancer = Balancer(self.time)
        self.routers = Balancer(self.time)
        services = {"web": self.balancer, "routers": self.routers}
        monkeypatch.setattr(balancers.proxy, "Balancer", lambda about: services[about.services[0].name])
        settings = Settings(Api(("https://x",)), proxy=Proxy((Target("web"), *more)))
        self.balancers = balancers.Balancers(self.time, self.log, settings)

    def want(self, *servers):
        self.balancers.want({LABEL: servers})

    def moments(self):
        return [moment for moment, _wanted in self.balancer.calls]


@pytest.fixture
def case(monkeypatch):
    return Case(monkeypatch)


def test_a_new_list_is_applied_at_once_and_each_minute(case):
    case.want(A, B)
    case.time.advance(130 * SECOND)
    assert case.balancer.calls == [(0, [A, B]), (60, [A, B]), (120, [A, B])]
    assert case.log.lines == ["2 servers"] and case.balancers.changes == 1


def test_the_same_list_again_and_no_list_are_nothing_to_do(case):
    case.want()
    case.want(A)
    case.want(A)
    case.want()
    assert case.balancer.calls == [(0, [A])] and case.balancers.wanted == {LABEL: (A,)}


def test_a_fault_is_logged_once_tried_again_less_and_less_often_and_cured(case):
    case.balancer.wrong = "it is away."
    case.want(A)
    case.time.advance(100 * SECOND)
    assert case.moments() == [0, 2, 6, 14, 30, 62]
    assert case.balancers.report() == [{"name": "proxy", "fault": "it is away."}]
    case.balancer.wrong = None
    case.time.advance(60 * SECOND)
    assert case.moments()[6:] == [122]
    assert case.balancers.report() == [{"name": "proxy", "fault": None}]
    assert case.log.lines == [
        "proxy does not have the servers of the cluster: it is away.",
        "proxy has the servers of the cluster again.",
    ]


def test_a_new_list_is_applied_although_a_fault_is_waited_for(case):
    case.balancer.wrong = "it is away."
    case.want(A)
    case.time.advance(SECOND)
    case.want(A, B)
    assert case.balancer.calls[1:] == [(1, [A, B])]


def test_a_server_that_drains_is_looked_at_each_second(case):
    case.balancer.draining = True
    case.want(A)
    case.time.advance(3 * SECOND)
    assert case.moments() == [0, 1, 2, 3]


def test_nothing_is_done_after_its_end(case):
    case.want(A)
    case.balancers.stop()
    case.time.advance(100 * SECOND)
    assert case.moments() == [0]


def test_masters_and_routers_are_servers_of_their_own_services(monkeypatch):
    case = Case(monkeypatch, Target("routers", label="role=router"))
    case.balancers.want({LABEL: (A,), "role=router": (B,)})
    assert (case.balancer.calls, case.routers.calls) == ([(0, [A])], [(0, [B])])
    case.routers.wrong = "it is away."
    case.balancers.want({LABEL: (A,), "role=router": (A, B)})
    assert case.balancers.report() == [{"name": "proxy", "fault": "it is away."}], "one for each balancer"
    assert case.balancers.present(LABEL) == (A,) and case.balancers.present("role=router") == (A, B)
    assert case.balancers.present("none") == ()


def test_a_server_answers_if_any_service_finds_it_and_nobody_knows_of_a_balancer_that_is_away(case):
    case.balancer.checked = [("10.0.0.1", True), ("10.0.0.2", False), ("10.0.0.1", False)]
    assert case.balancers.answering(LABEL) == {"10.0.0.1": True, "10.0.0.2": False}
    case.balancer.wrong = "it is away."
    assert case.balancers.answering(LABEL) is None
