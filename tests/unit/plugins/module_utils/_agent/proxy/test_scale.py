# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the master does for its services costs twice as much for twice as many. Not seconds are counted, which vary."""

from __future__ import annotations

import json
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import server
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.client import Checks, Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import report
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.counters import Counters
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.http_endpoints import HttpEndpoints
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.workers import Events, WorkerPool
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import metrics
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.loops import Time
from support.proxy.health import HealthCase, service
from support.proxy.reports import REPORT

FEW, MANY = 100, 200


def services(count):
    return [service(name=f"s{number}") for number in range(count)]


def reading(count):
    text = json.dumps(
        {"services": [{"name": f"s{n}", "port": 1000 + n, "servers": ["192.0.2.1"]} for n in range(count)]}
    )
    return lambda: config.parse(text)


def applying(count):
    known = services(count)
    return lambda: HealthCase(*known).health.apply(known)


def changing(count):
    case = HealthCase(*services(count))
    return lambda: [case.health.take_result(Result(f"s{number}/a", False, 0, "")) for number in range(count)]


def reporting(count):
    known, loop = tuple(services(count)), Loop()
    case = HealthCase(*known)
    pool = WorkerPool(loop, case, dict, Events(*[print] * 4))
    endpoints = HttpEndpoints(loop, case.health.usable, lambda: True, {})
    loop.close()
    return lambda: report.build(settings.Settings(known), case.health, Counters({}), pool, endpoints, 0)


def scraping(count):
    whole = {**REPORT, "services": REPORT["services"] * count}
    return lambda: metrics.page(whole)


def hearing_of_checks(count):
    checks = Checks(Time(), print, print, lambda _run: None, "checks")
    checks.apply([case.check for case in HealthCase(*services(count)).health._servers.values()], "")
    numbers = [numbered.number for numbered in checks._checks.values()]
    return lambda: [checks._receive([server.RAN, number, True, "", 0]) for number in numbers]


@pytest.mark.parametrize("what", [reading, applying, changing, reporting, scraping, hearing_of_checks])
def test_twice_the_services_cost_twice_as_much(what):
    few, many = steps_of(what(FEW)), steps_of(what(MANY))
    assert few > FEW
    assert many < 2.1 * few


def steps_of(function):
    """Return how many instructions of Python this function takes."""
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
