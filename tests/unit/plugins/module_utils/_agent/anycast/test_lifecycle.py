# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of the health gate: its start, signals, reloads and ends. The kernel is a stand-in, the signals are real."""

from __future__ import annotations

import hashlib
import json
import os
import signal

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import config, lifecycle
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from support.agent.loops import LIMIT
from support.anycast.configs import GOOD
from support.anycast.hosts import UP
from support.vrrp.fakes import Checks, Log, Netlink
from support.vrrp.lifecycles import Notifier

HERE, HERE6 = "192.0.2.10/32", "2001:db8::10/128"


class Kernel(Netlink):
    """One whose events are readable while there are any, and that notes its end."""

    def __init__(self, journal):
        super().__init__(journal)
        self.reader, self.writer = os.pipe()
        self.link("lo", 1)

    def fileno(self):
        return self.reader

    def close(self):
        self.journal.append("kernel: close")
        os.close(self.reader)
        os.close(self.writer)


class Case:
    def __init__(self, folder, monkeypatch):
        self.folder, self.path, self.journal = folder, folder / "anycast.json", []
        self.log, self.notifier = Log(self.journal), Notifier(self.journal)
        self.checks = Checks(self.journal)
        self.checks.stop = lambda: self.journal.append("checks: stop")
        self.kernel = None
        monkeypatch.setattr(lifecycle, "Netlink", self._kernel)
        monkeypatch.setattr(lifecycle.Checks, "start", lambda *_arguments, **_daemon: self.checks)
        self.write()

    def _kernel(self):
        self.kernel = Kernel(self.journal)
        return self.kernel

    def write(self, **changes):
        whole = {**GOOD, "status_socket": str(self.folder / "status"), "held_back": [], **changes}
        self.path.write_text(json.dumps(whole))

    def run(self, *happens):
        """Run it; call these functions one after the other once every check has succeeded."""
        found = config.load(str(self.path))
        assert found.faults == []
        self.life = lifecycle.Lifecycle(str(self.path), self.log, self.notifier, {})
        waiting = [self.serve, self.journal.clear, *happens]

        def go_on():
            if waiting:
                waiting.pop(0)()
                self.life.loop.after(20_000, go_on)

        self.life.loop.after(0, go_on)
        self.life.loop.after(LIMIT, self.life.loop.stop)
        self.life.run(found)
        assert not waiting
        return self.journal

    def serve(self):
        for result in UP.values():
            self.life._take_result(result)

    def send(self, number):
        return lambda: os.kill(os.getpid(), number)

    @property
    def on_lo(self):
        return {f"{address}/{prefix}" for _index, address, prefix in self.kernel.there}


@pytest.fixture
def case(tmp_path, monkeypatch):
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]
    found = Case(tmp_path, monkeypatch)
    yield found
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)
    if found.life:
        found.life._signals.close()
        found.life.loop.close()


def test_a_file_that_has_changed_since_it_was_read_is_not_in_force(case):
    read = case.path.read_bytes()
    case.run(lambda: case.path.write_text("{}"), case.send(signal.SIGTERM))
    assert case.life.report()["config_sha256"] == hashlib.sha256(read).hexdigest()


END = ["systemd: stopping", "checks: stop", "kernel: close"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_takes_the_vips_away_before_anything_else(case, number):
    gone = [f"delete {HERE} from lo", f"delete {HERE6} from lo", "says The addresses are given up; goodbye."]
    assert case.run(case.send(number)) == [*gone, *END]
    assert case.on_lo == set() and not os.path.exists(case.folder / "status")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_new_version_finds_the_vips(case, number):
    said = "says The addresses stay, for the version that is installed now; goodbye."
    assert case.run(case.send(number)) == [said, *END]
    assert case.on_lo == {HERE, HERE6}


def test_a_restart_is_no_stop_even_if_both_signals_have_arrived(case):
    def both():
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGUSR1))
        case.send(signal.SIGTERM)()
        case.send(signal.SIGUSR1)()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGUSR1))

    case.run(both)
    assert case.on_lo == {HERE, HERE6}


def test_what_goes_wrong_inside_leaves_the_vips(case, monkeypatch):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        case.run(fail)
    assert case.on_lo == {HERE, HERE6} and case.journal[-3:] == END


def test_what_cannot_be_removed_is_said(case):
    (said,) = [
        line
        for line in case.run(lambda: case.kernel.kept.add(HERE), case.send(signal.SIGTERM))
        if "remove it by hand" in line
    ]
    assert said == f"says {HERE} could not be removed, and may be announced: remove it by hand."


def test_a_reload_tells_systemd_and_one_with_a_fault_changes_nothing(case):
    faults = []

    def look():
        faults.append(case.life.report()["config_fault"])

    done = case.run(
        lambda: case.write(vips=[]),
        case.send(signal.SIGHUP),
        look,
        lambda: case.write(vips=GOOD["vips"][:1]),
        case.send(signal.SIGHUP),
        look,
        case.send(signal.SIGUSR1),
    )
    assert "configuration.vips is []" in faults[0] and faults[1] is None
    assert [line for line in done if line.startswith("systemd")][:4] == ["systemd: reloading", "systemd: ready"] * 2
    assert case.on_lo == {HERE}


def test_a_result_that_comes_while_it_runs_counts_in_the_same_turn(case):
    def fail():
        case.life._take_result(Result("haproxy_down", False, 1, ""))
        assert case.on_lo == set()

    case.run(fail, case.send(signal.SIGUSR1))


def run_main(case):
    return lifecycle.main(str(case.path), config.load(str(case.path)), case.log, case.notifier, {})


def test_beside_another_one_it_does_not_start_and_changes_nothing(case, loop):
    case.life = None
    other = status_socket.StatusServer(loop, str(case.folder / "status"), dict)
    try:
        assert run_main(case) == 1
    finally:
        other.close()
    assert case.on_lo == set() and "another agent answers at" in "".join(case.journal)


def test_without_netlink_it_says_why(case, monkeypatch):
    def refuse():
        raise PermissionError(1, "Operation not permitted")

    case.life = None
    monkeypatch.setattr(lifecycle, "Netlink", refuse)
    assert run_main(case) == 1
    assert case.journal == ["says The health gate cannot be started: operation not permitted."]
