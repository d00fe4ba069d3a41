# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The master's side of its workers, with workers that do as the test says; ``test_lifecycle`` has real ones."""

from __future__ import annotations

import errno
import json
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import availability, workers
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.workers import (
    Events,
    Generation,
    WorkerHandle,
    WorkerPool,
    portions,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import forked, watchdog
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.loops import SECOND, Looks, run_until
from support.proxy.workers import FakeWorker


class Case:
    def __init__(self, monkeypatch):
        self.loop = Loop(Looks(tick=500))
        self.log, self.workers, self.lost, self.messages = [], [], [], []
        self.fails = 0  # how many of the next forks
        monkeypatch.setattr(workers, "Forked", self.fork)
        self.told = []  # about the availability
        self.pool = WorkerPool(
            self.loop,
            self,
            dict,
            Events(
                lambda worker, message: self.messages.append((worker.pid, message)),
                self.lost.append,
                lambda: self.told.append("serves"),
                self.told.append,
            ),
        )

    def fork(self, _name, _serve, _kept):
        if self.fails:
            self.fails -= 1
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.workers.append(FakeWorker(100 + len(self.workers), theirs, ours))
        return self.workers[-1]

    def warning(self, text):
        self.log.append(text)

    def employ(self, *servers, workers=1, **changes):
        before = len(self.workers)
        self.start(*servers, workers=workers, **changes)
        self.begin(*range(before, len(self.workers)))

    def start(self, *servers, **changes):
        service = settings.Service("web", ("*",), 80, servers)
        self.pool.start_generation(settings.Settings((service,), **changes), [])

    def begin(self, *workers):
        """Let these workers say that they are there."""
        wanted = len(self.messages) + len(workers)
        for worker in workers:
            self.workers[worker].end.send(b"{}")
        self.until(lambda: len(self.messages) == wanted)

    def say(self, worker, **message):
        """Let a worker say something, and hear it."""
        wanted = len(self.messages) + 1
        self.workers[worker].end.send(json.dumps(message).encode())
        self.until(lambda: len(self.messages) == wanted)

    def until(self, condition):
        run_until(self.loop, condition)

    def advance(self, duration):
        end = self.loop.now() + duration
        self.until(lambda: self.loop.now() >= end)


@pytest.fixture
def case(monkeypatch):
    made = Case(monkeypatch)
    yield made
    for worker in made.workers:
        worker.end.close()
        worker.connection.close()
    made.loop.close()


A = settings.Server("a", "192.0.2.1", 80)
B = settings.Server("b", "192.0.2.2", 80)


def test_a_new_generation_serves_and_the_old_one_gets_its_time_to_drain(case):
    case.employ(A, workers=2)
    case.employ(A, hard_stop_after=90 * SECOND)
    old, _other, new = case.workers
    assert old.heard() == [{"drain": 90}] and new.heard() == []
    assert [(worker.pid, worker.draining, worker.generation.number) for worker in case.pool.workers] == [
        (100, True, 1),
        (101, True, 1),
        (102, False, 2),
    ]
    case.employ(A)
    assert old.heard() == []  # it knows


def test_the_old_ones_serve_until_all_the_new_ones_do(case):
    """A new one that has just begun may be the last to close a socket, and would not take who waits there."""
    case.employ(A)
    service = settings.Service("web", ("*",), 80, (A,))
    case.pool.start_generation(settings.Settings((service,), workers=2, hard_stop_after=90 * SECOND), [])
    case.begin(1)
    case.workers[2].die()
    case.until(lambda: len(case.workers) == 4)
    assert case.workers[0].heard() == [] and not case.pool.workers[0].draining
    case.begin(3)
    assert case.workers[0].heard() == [{"drain": 90}]
    assert [worker.draining for worker in case.pool.workers] == [True, False, False]


def test_when_there_cannot_be_a_new_generation_the_old_one_goes_on(case, monkeypatch):
    case.employ(A)

    def one_only(*arguments):
        case.fails = 0 if len(case.workers) < 2 else 1
        return case.fork(*arguments)

    monkeypatch.setattr(workers, "Forked", one_only)
    with pytest.raises(OSError, match="temporarily unavailable"):
        case.employ(A, workers=3)
    first, second = case.workers
    assert first.heard() == [] and second.heard() == [{"drain": 0}]
    assert case.pool.generation.number == 1 and case.pool.generation.settings.workers == 1


def test_a_worker_that_fails_repeatedly_is_replaced_less_and_less_often(case, monkeypatch):
    monkeypatch.setattr(forked, "MIN_DELAY", 150_000)
    monkeypatch.setattr(forked, "MAX_DELAY", 450_000)
    case.employ(A)
    moments = []
    for number in range(5):
        begun = case.loop.now()
        case.workers[number].die()
        case.until(lambda number=number: len(case.workers) == number + 2)
        moments.append(case.loop.now() - begun)
    first, second, third, *last = moments
    assert first < 140_000 < second and third >= 300_000 and all(moment >= 450_000 for moment in last)
    assert case.log[0] == "Worker 100 has ended (exit code 1) and is replaced; its sessions are lost."
    assert [worker.pid for worker in case.lost] == [100, 101, 102, 103, 104]


def test_a_replacement_that_cannot_be_had_is_tried_again(case, monkeypatch):
    monkeypatch.setattr(workers, "MAX_DELAY", 50_000)
    case.employ(A)
    case.fails = 2
    case.workers[0].die("signal 9")
    case.until(lambda: len(case.workers) == 2)
    assert case.log[1:] == ["A worker cannot be started: resource temporarily unavailable."] * 2


def test_after_a_reload_no_worker_of_the_old_generation_is_replaced(case):
    case.employ(A)
    case.employ(A)
    case.workers[0].die("exit code 0")
    case.until(lambda: len(case.pool.workers) == 1)
    assert case.log == []  # it was about to
    case.pool._restart_delay._next = 50_000
    case.workers[1].die()
    case.until(lambda: case.pool.workers == [])
    case.employ(A)
    case.advance(150_000)
    assert len(case.workers) == 3


def test_an_old_worker_that_fails_after_a_reload_is_not_replaced(case):
    case.employ(A)
    case.workers[0].die()
    case.employ(A)  # before the loop has noticed
    case.until(lambda: len(case.pool.workers) == 1)
    case.advance(100_000)
    assert len(case.workers) == 2


def test_a_draining_pool_starts_no_worker(case):
    case.employ(A, workers=2)
    case.pool._restart_delay._next = 50_000
    case.workers[0].die()
    case.until(lambda: len(case.pool.workers) == 1)
    case.pool.drain(5 * SECOND)
    assert case.workers[1].heard() == [{"drain": 5}]
    case.advance(150_000)
    assert len(case.workers) == 2


def test_a_worker_that_does_not_end_in_time_is_killed(case, monkeypatch):
    monkeypatch.setattr(workers, "KILL_DELAY", 50_000)
    case.employ(A)
    case.pool.drain(3600 * SECOND)
    case.pool.drain(50_000)
    begun = case.loop.now()
    case.until(lambda: case.workers[0].killed)
    assert 90_000 <= case.loop.now() - begun < 1_000_000
    case.pool.drain(3600 * SECOND)
    assert case.pool.workers[0].deadline < case.loop.now()


def test_an_update_of_a_server_goes_to_the_workers_that_know_the_same_one(case):
    case.employ(A, B)
    case.employ(A._replace(port=81), B)
    orders = {"web/a": {"state": "down"}, "web/b": {"state": "up"}}
    case.pool.send_updates(orders)
    old, new = case.workers
    assert old.heard()[1:] == [{"servers": {"web/b": {"state": "up"}}}]
    assert new.heard() == [{"servers": orders}]


def test_every_message_of_a_worker_is_heard(case):
    case.employ(A)
    case.workers[0].end.send(b'{"counters": {}}')
    case.workers[0].end.send(b'{"drained": true}')
    case.until(lambda: len(case.messages) == 3)
    assert case.messages[1:] == [(100, {"counters": {}}), (100, {"drained": True})]


def test_updates_are_sent_in_parts_that_fit_into_a_message():
    orders = {
        f"{'s' * 64}/{number:064}": {"state": "maint", "weight": 256, "shutdown": False} for number in range(3000)
    }
    parts = list(portions(orders))
    assert {key: order for part in parts for key, order in part.items()} == orders
    assert all(len(json.dumps({"servers": part})) < workers.MAX_MESSAGE for part in parts) and len(parts) < 30
    assert list(portions({})) == []


def test_a_worker_may_be_remembered_and_restored(case, monkeypatch):
    case.employ(A, B)
    (worker,) = case.pool.workers
    worker.draining, worker.deadline = True, 12345
    known = json.loads(json.dumps(worker.to_json()))
    monkeypatch.undo()
    with socket.socket() as connection:
        restored = workers.WorkerHandle.from_json(known, connection)
    for what in ("pid", "since", "draining", "deadline"):
        assert getattr(restored, what) == getattr(worker, what), what
    assert restored.generation == worker.generation._replace(settings=None, listeners=())


def test_a_new_version_kills_an_adopted_worker_at_its_deadline(case):
    late, serving = (
        WorkerHandle(Generation(1, {}), case.fork("", None, ()), 0.0),
        WorkerHandle(Generation(2, {}), case.fork("", None, ()), 0.0),
    )
    late.draining, late.deadline = True, case.loop.now() + 50_000
    for worker in (late, serving):
        case.pool.adopt(worker)
    assert case.pool.generation.number == 2
    case.until(lambda: case.workers[0].killed)
    assert case.loop.now() >= late.deadline and not case.workers[1].killed


@pytest.fixture
def quick_watch(monkeypatch):
    """Let workers that are silent for 100 ms hang, and an outage last for 100 ms."""
    monkeypatch.setattr(watchdog, "TICK", 10_000)
    monkeypatch.setattr(workers, "MAX_SILENCE", 100_000)
    monkeypatch.setattr(availability, "MAX_OUTAGE", 100_000)


@pytest.mark.usefixtures("quick_watch")
def test_a_worker_that_hangs_is_replaced_before_it_has_ended_and_one_that_reports_is_not(case):
    case.employ(A, workers=2)
    hung, healthy = case.workers

    def report():
        healthy.end.send(b"{}")
        case.loop.after(20_000, report)

    report()
    case.until(lambda: len(case.workers) == 3)
    assert hung.killed and case.pool.workers[0].state == "hung"
    assert case.log == ["Worker 100 has not reported for 3 s and is replaced; its sessions are lost."]
    hung.die("signal 9")
    case.until(lambda: case.lost)
    assert [worker.pid for worker in case.lost] == [100] and len(case.log) == 1
    assert not healthy.killed and case.told == ["serves"]


@pytest.mark.usefixtures("quick_watch")
def test_a_pause_of_all_processes_together_costs_no_worker(case):
    """As when the host is suspended, or a virtual machine migrates."""
    case.employ(A)
    case.advance(50_000)
    case.loop.now.now += 3600 * SECOND
    case.advance(20_000)
    assert not case.workers[0].killed and case.log == []
    case.until(lambda: case.workers[0].killed)


@pytest.mark.usefixtures("quick_watch")
def test_a_draining_worker_that_hangs_is_killed_and_not_replaced(case):
    case.employ(A)
    case.pool.drain(3600 * SECOND)
    case.until(lambda: case.workers[0].killed)
    case.advance(150_000)
    assert len(case.workers) == 1 and case.told == ["serves"]
    assert case.log == ["Worker 100 has not reported for 3 s and is killed; its sessions are lost."]


@pytest.mark.usefixtures("quick_watch")
def test_an_outage_that_a_replacement_ends_is_none(case):
    case.employ(A)
    case.workers[0].die()
    case.until(lambda: len(case.workers) == 2)
    assert not case.pool.availability.serves
    case.begin(1)
    assert case.pool.availability.serves and case.told == ["serves", "serves"]


@pytest.mark.usefixtures("quick_watch")
def test_when_no_replacement_serves_the_pool_gives_up(case):
    case.employ(A)
    case.fails = 1000
    case.workers[0].die("signal 11")
    case.until(lambda: len(case.told) == 2)
    assert case.told[1] == "no worker has served for 0.1 s: it has ended (signal 11)."


def test_a_first_worker_that_ends_before_it_serves_is_a_failed_start(case):
    case.start(A)
    case.workers[0].end.send(b'{"unfit": "no module named json"}')
    case.workers[0].die()
    case.until(lambda: case.told)
    assert case.told == ["no worker can serve: no module named json."]


def test_after_a_reload_a_worker_that_cannot_serve_is_no_failed_start(case):
    case.employ(A)
    case.start(A)
    case.workers[1].die()
    case.until(lambda: len(case.workers) == 3)
    assert case.told == ["serves"]


def test_a_replacement_has_the_number_of_the_worker_that_it_replaces(case):
    """Limits are divided by these numbers."""
    case.employ(A, workers=3)
    case.workers[1].die()
    case.until(lambda: len(case.workers) == 4)
    assert [worker.number for worker in case.pool.workers] == [0, 2, 1]


def test_an_order_is_executed_once_every_worker_has_said_so(case):
    case.employ(A, workers=2)
    late = []
    case.pool.send_updates({"web/a": {}})
    case.pool.when_executed(late.append)
    for worker in case.workers:
        assert worker.heard() == [{"servers": {"web/a": {}}}, {"confirm": 1}]
    case.say(0, confirmed=1)
    assert late == []
    case.say(1, confirmed=1)
    assert late == [0]
    case.advance(2 * SECOND)
    assert late == [0]


def test_a_worker_that_does_not_say_so_is_not_waited_for(case):
    case.employ(A, workers=2)
    first, second = [], []
    case.pool.when_executed(first.append)
    case.pool.when_executed(second.append)
    case.say(0, confirmed=1)
    case.say(0, confirmed=2)
    case.say(1, confirmed=2)
    assert (first, second) == ([], [0])
    case.until(lambda: first == [1])


def test_a_worker_that_has_ended_is_not_waited_for(case):
    case.employ(A)
    late = []
    case.pool.when_executed(late.append)
    case.workers[0].die()
    case.until(lambda: late == [0])
    case.pool.drain(0)
