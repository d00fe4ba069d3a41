# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the master does for its services costs twice as much for twice as many. Not seconds are counted, which vary."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import server
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import (
    Callbacks,
    ChecksProcess,
    Result,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import report
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.counters import Counters
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.http_endpoints import HttpEndpoints
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.rendering import Renderer
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.workers import Events, WorkerPool
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import metrics
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.request_server import RequestServer
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.status_socket import document
from support.agent.loops import Time, run_until
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
    endpoints = HttpEndpoints(loop, case.health.usable, lambda: True, {}, print)
    loop.close()
    return lambda: report.build(settings.Settings(known), case.health, Counters({}), pool, endpoints, 0)


def scraping(count):
    whole = {**REPORT, "services": REPORT["services"] * count}
    return lambda: metrics.page(whole)


def hearing_of_checks(count):
    callbacks = Callbacks(print, print, lambda _run: None)
    checks = ChecksProcess(Time(), callbacks, "checks", server.serve)
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
    with counting() as steps:
        function()
    return steps.count


class Steps:
    """Counts the instructions of Python."""

    count = 0

    def trace(self, frame, event, _argument):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.count += event == "opcode"
        return self.trace


@contextlib.contextmanager
def counting():
    before, steps = sys.gettrace(), Steps()
    sys.settrace(steps.trace)
    try:
        yield steps
    finally:
        sys.settrace(before)


SERVERS_OF_EACH = 10


class Turns(Loop):
    """A loop that knows how much work its longest turn was: whatever else is due waits as long."""

    steps, begun, longest = Steps(), 0, 0

    def _wait(self, wait):
        self.longest = max(self.longest, self.steps.count - self.begun)
        self.begun = self.steps.count
        super()._wait(wait)


def longest_turn(services_count, render):
    """Return the instructions of the longest turn in which a report on so many services is asked for and sent."""
    service = {**REPORT["services"][0], "servers": REPORT["services"][0]["servers"][:1] * SERVERS_OF_EACH}
    whole, loop = {**REPORT, "services": [service] * services_count}, Turns()
    renderer = Renderer(loop)
    renderer.servers = services_count * SERVERS_OF_EACH
    here = os.getpid()

    def rendered():
        assert os.getpid() != here, "what C does, such as writing JSON, is not counted"
        sys.settrace(None)  # counting takes a hundred times longer
        return render(whole)

    received = []
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client, counting() as loop.steps:
        RequestServer(loop, listener, lambda request, _ended: renderer.answer(rendered) if request else None)
        client.connect(listener.getsockname())
        client.sendall(b"report\n")
        loop.watch(client.fileno(), lambda _events: received.append(client.recv(1 << 20)))
        run_until(loop, lambda: received[-1:] == [b""])
    loop.close()
    assert b"".join(received) == render(whole)
    return loop.longest


@pytest.mark.parametrize(
    "render", [lambda whole: metrics.page(whole).body.encode(), document], ids=["scrape", "status"]
)
def test_no_turn_of_the_loop_is_longer_for_a_report_on_more_servers(render):
    """A monitor's answer waits for one turn at most, so a report on 2,000 services delays it no more than one on 50."""
    few, many = longest_turn(50, render), longest_turn(200, render)
    assert many < 1.5 * few
