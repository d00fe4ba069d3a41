# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The master in this process, with workers that are none; ``test_lifecycle`` has the whole proxy."""

from __future__ import annotations

import errno
import json
import os
import socket
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.config.file import Found
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import lifecycle, workers
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.lifecycle import Lifecycle
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.listeners import Refused
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.master import Events, Master
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.rendering import Renderer
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.sd_notify import Notifier
from support.agent.clients import while_running
from support.agent.loops import run_until
from support.ports import free_ports
from support.proxy.masters import ask, get
from support.proxy.proxies import LOCAL
from support.proxy.workers import FakeWorker

A, B = settings.Server("a", "192.0.2.1", 80), settings.Server("b", "192.0.2.2", 80)


class MasterCase:
    """A master, and all that it has to do with."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.loop, self.log, self.suspected, self.workers = folder, Loop(), [], [], []
        self.fails = False
        monkeypatch.setattr(workers, "Forked", self)
        self.master = self.new()

    def new(self):
        return Master(self.loop, self, lambda: {"config": "x"}, Events(lambda: None, self.log.append, self.loop.stop))

    def settings(self, port, servers=(A, B), door="door"):
        service = settings.Service("web", (LOCAL,), port, servers)
        return settings.Settings((service,), status_socket=str(self.folder / door))

    def serve(self, wanted):
        self.master.start(self, self.master.prepare(wanted), None)

    def __call__(self, *_arguments):
        """Fork a worker."""
        if self.fails:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.workers.append(FakeWorker(100 + len(self.workers), theirs, ours))
        return self.workers[-1]

    def inherited(self, pid, connection):
        """Return a worker that another master has forked."""
        return FakeWorker(pid, self.workers[pid - 100].end, connection)

    def say(self, worker, **message):
        self.workers[worker].end.send(json.dumps(message).encode())

    # the checks

    def apply(self, *_checks):
        pass

    def suspect(self, key):
        self.suspected.append(key)

    # the log

    def info(self, *text):
        self.log.append(text)

    warning = fault = cured = info


@pytest.fixture
def case(tmp_path, monkeypatch):
    made = MasterCase(tmp_path, monkeypatch)
    yield made
    made.master.close()
    for worker in made.workers:
        worker.end.close()
        worker.connection.close()
    made.loop.close()


def is_open(port):
    with socket.socket() as client:
        return client.connect_ex((LOCAL, port)) == 0


def test_when_there_cannot_be_workers_everything_stays_and_nothing_is_left(case):
    port, other = free_ports(2)
    case.serve(case.settings(port))
    case.master.take_result(Result("web/a", False, 0, "refused"))
    case.master.take_result(Result("web/b", False, 0, "refused"))
    before = case.master.report()
    prepared = case.master.prepare(case.settings(other, (A, B._replace(name="c")), "other"))
    case.fails = True
    with pytest.raises(OSError, match="temporarily"):
        case.master.switch_to(prepared)
    case.master.discard(prepared)
    assert case.master.report() == before
    assert (is_open(port), is_open(other)) == (True, False)
    assert os.listdir(case.folder) == ["door"]


def test_what_cannot_be_prepared_leaves_nothing(case):
    port, other = free_ports(2)
    case.serve(case.settings(port))
    (case.folder / "file").write_text("precious")
    with pytest.raises(Refused, match="something else") as refused:
        case.master.prepare(case.settings(other, door="file"))
    assert refused.value.__traceback__ and not is_open(other)


def test_reports_of_an_old_worker_on_a_changed_server_are_ignored(case):
    (port,) = free_ports(1)
    case.serve(case.settings(port))
    case.say(0, failed="web/a")
    run_until(case.loop, lambda: case.suspected == ["web/a"])
    case.master.switch_to(case.master.prepare(case.settings(port, (A._replace(port=81), B))))
    case.say(0, failed="web/a")
    case.say(0, failed="web/b")
    case.say(0, counters={"web": {"sessions": 7}})
    run_until(case.loop, lambda: case.master.report()["services"][0]["sessions"] == 7)
    assert case.suspected == ["web/a", "web/b"]


def test_a_new_version_inherits_the_state(case):
    (port,) = free_ports(1)
    wanted = case.settings(port)
    case.serve(wanted)
    case.say(0, counters={"web": {"sessions": 7, "current": 2}})
    run_until(case.loop, lambda: case.master.report()["workers"][0]["current"] == 2)
    case.master.counters.ended["web"] = {"sessions": 100}
    case.master.take_result(Result("web/a", False, 0, "refused"))
    gone = os.posix_spawn("/bin/true", ["true"], {})
    # Descriptors stay what they are when a program becomes another one.
    known = json.loads(json.dumps({**case.master.to_json(), "gone": [gone]}))
    known["told"][str(gone)] = {"web": {"sessions": 1000, "current": 5}}
    for number in (known["door"], *known["listeners"]):
        number[-1] = os.dup(number[-1])
    for worker in known["hands"]:
        worker["connection"] = os.dup(worker["connection"])
    before = case.master
    case.master = case.new()
    try:
        case.master.inherit(known)
        run_until(case.loop, lambda: not os.path.exists(f"/proc/{gone}"))
        case.master.start(case, case.master.prepare(wanted), known)
        case.say(1)
        run_until(case.loop, lambda: case.master.pool.workers[0].draining)
        report = case.master.report()
    finally:
        before.close()
    (service,) = report["services"]
    assert (service["sessions"], service["current"], service["usable"]) == (1107, 2, 1)
    assert [(each["generation"], each["state"]) for each in report["workers"]] == [(1, "draining"), (2, "serving")]
    assert is_open(port)


def test_a_child_that_outlives_two_versions_is_reaped_by_the_third(case):
    """The checks process of the first version may need a moment to end, and a second upgrade may be quicker."""
    (port,) = free_ports(1)
    case.serve(case.settings(port))
    ending, tell = os.pipe()
    child = os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, ending, 0)])
    os.close(ending)
    case.master.reap(child)
    passed_on = case.master.to_json()["gone"]
    os.close(tell)
    assert passed_on == [child]
    run_until(case.loop, lambda: case.master.to_json()["gone"] == [])
    assert not os.path.exists(f"/proc/{child}")


def test_reloads_while_the_file_is_read_lead_to_one_more_reading(monkeypatch):
    """It may have changed after it was read."""
    readings = []
    monkeypatch.setattr(lifecycle, "ConfigReader", lambda _loop, _path, done: readings.append(done))
    one = Lifecycle("/etc/proxy.json", SimpleNamespace(warning=print), Notifier({}), {})
    for _each in range(3):
        one.reload()
    assert len(readings) == 1
    readings[0](Found("", None, ["first."]))
    assert len(readings) == 2 and one.reload_error == "first."
    readings[1](Found("", None, ["second."]))
    assert len(readings) == 2 and one.reload_error == "second."
    one.loop.close()


def test_a_start_without_workers_is_a_sentence(monkeypatch):
    def start(*_arguments):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    one = Lifecycle("/etc/proxy.json", None, None, {})
    monkeypatch.setattr(one.master, "start", start)
    monkeypatch.setattr(one, "checks", None, raising=False)
    with pytest.raises(Refused, match=r"no worker can be started: resource temporarily unavailable\."):
        one._serve(None, None)
    one.loop.close()


def test_what_reports_on_every_server_is_left_to_the_renderer_and_a_monitor_is_not(case, monkeypatch):
    monkeypatch.setattr(Renderer, "answer", lambda _self, _render: b"elsewhere")
    port, page, monitored = free_ports(3)
    wanted = case.settings(port)._replace(
        monitors=(settings.Monitor("ready", (LOCAL,), monitored),), page=settings.Page((LOCAL,), page)
    )
    case.serve(wanted)

    def visit():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(wanted.status_socket)
            client.shutdown(socket.SHUT_WR)
            status = client.recv(100)
        pages = [ask(page, f"GET {path} HTTP/1.1\r\n\r\n".encode()) for path in ("/", "/metrics")]
        return [status, *pages], get(monitored)[0]

    assert while_running(case.loop, visit) == ([b"elsewhere"] * 3, 503)
