# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A new version takes over in the daemon's life: what the old one does, and what the new one."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import lifecycle
from support.vrrp.lifecycles import (
    BEGIN,
    END,
    INSTANCE,
    FakeNewProcess,
    FakeOldProcess,
    first_of,
)
from support.waiting import LIMIT_S

ASKED = ["systemd: reloading", "new process: start"]
NO_SOCKET = "The new version does not take over: there is no status socket to hand over, so restart the agent."
HANDED_OVER = ["checks: stop", "network: close", "says The addresses are handed over; goodbye."]


def test_a_new_version_gets_all_that_is_known_and_the_old_one_gives_nothing_up(case):
    one = case.run(case.upgrade, case.first_is_ready, end=None)
    assert case.journal == [*BEGIN, *ASKED, "systemd: succeeded 4711", *HANDED_OVER]
    (new,) = case.new_processes
    assert new.environ == {"HOME": "/"} and new.known == {"since": one.since, "daemon": {"front": "Active"}}
    assert new.state["config"] == case.path.read_text() and new.state["door"][0] == str(case.folder / "vrrp.sock")
    assert (case.folder / "vrrp.sock").is_socket()


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_signal_in_the_moment_of_the_handover_is_forwarded_to_the_new_process(case, monkeypatch, goes_on):
    """systemd may not know the new main process yet, and would kill it later, with its addresses in place."""
    other = subprocess.Popen(["sleep", "600"])
    monkeypatch.setattr(FakeNewProcess, "pid", other.pid)
    try:
        case.meanwhile = case.term

        def ready():
            case.new_processes[0].goes_on = goes_on
            case.new_processes[0].on_ready()

        case.run(case.upgrade, ready, end=None)
        assert other.poll() is None or goes_on
        assert not goes_on or other.wait(LIMIT_S) == -signal.SIGTERM
        assert ("daemon: leave" in case.journal) != goes_on
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("fails", ["to start", "before it is ready", "when it is committed"])
def test_a_new_version_that_fails_costs_a_line_and_is_reported(case, fails):
    faults = []

    def fail():
        if fails == "before it is ready":
            case.new_processes[0].on_end("it has ended")
        elif fails == "when it is committed":
            case.new_processes[0].goes_on = False
            case.new_processes[0].on_ready()

    def ask():
        case.start_fails = fails == "to start"
        case.upgrade()

    one = case.run(ask, fail, lambda: faults.append(case.lifecycle.report()["config_fault"]))
    assert [line for line in case.journal if "The new version does not take over: it " in line]
    assert faults[0].startswith("The new version does not take over: it ") and not one.handed_over
    assert case.journal[-len(END) - 1 :] == ["daemon: leave", *END]
    assert [line for line in case.journal if line.startswith("systemd")][1:3] == [
        "systemd: reloading",
        "systemd: ready",
    ]


def test_a_second_try_may_succeed(case):
    case.run(
        case.upgrade,
        case.upgrade,  # while the first one is under way it is the same
        lambda: case.new_processes[0].on_end("it has ended"),
        case.upgrade,
        case.second_is_ready,
        end=None,
    )
    assert case.journal[-4:] == ["systemd: succeeded 4711", *HANDED_OVER]
    assert len(case.new_processes) == 2 and case.lifecycle.reload_error is None


def test_a_reload_meanwhile_begins_anew_with_what_is_in_force_then(case):
    case.run(case.upgrade, lambda: case.write(priority=7), case.hup, case.second_is_ready, end=None)
    reload = [
        "new process: close",
        "systemd: reloading",
        "daemon: apply 7",
        f"says {case.path} is in force.",
        "systemd: ready",
    ]
    assert case.journal == [*BEGIN, *ASKED, *reload, *ASKED, "systemd: succeeded 4711", *HANDED_OVER]
    assert '"priority": 7' in case.new_processes[1].state["config"]


def test_a_router_that_resigns_starts_no_new_process(case):
    served = []
    case.linger = served.append
    case.run(case.upgrade, case.term, case.upgrade, first_of(served), end=None)
    assert case.journal == [*BEGIN, *ASKED, "new process: close", "daemon: leave", *END]


def inherits(case, **options):
    case.write()
    case.old_process = FakeOldProcess(case, **options)
    return case


GOES_ON = [
    "checks: start",
    "real-time",
    "daemon: start later",
    "old process: request handover",
    "daemon: resume {'front': 'Active'}",
    "old process: commit",
    f"says onprem.lb {VERSION} takes over from here.",
]


def test_the_new_version_has_all_ready_before_it_asks_and_answers_where_the_old_one_did(case):
    one = inherits(case).run()
    assert case.journal == [*GOES_ON, "daemon: leave", *END]
    assert one.since == 5.5
    assert not list(case.folder.glob("*.sock"))


def test_the_new_version_goes_over_to_a_file_that_is_another_one_by_now(case):
    before = json.dumps({"instances": [{**INSTANCE, "priority": 9}], "status_socket": str(case.folder / "vrrp.sock")})
    inherits(case, text=before).run()
    assert case.journal[len(GOES_ON) :][:2] == ["daemon: apply 100", f"says {case.path} is in force."]


def test_the_new_version_is_silent_towards_systemd_until_that_listens_to_it(case):
    case.notifier.watchdog = 30_000
    inherits(case).run(*[lambda: None] * 5)
    notified = [line for line in case.journal if line.startswith("systemd")]
    assert notified[0] == "systemd: alive" and notified[-1] == "systemd: stopping"


@pytest.mark.parametrize("why", ["gone", "another language"])
def test_a_new_version_that_cannot_resume_touches_nothing(case, why):
    inherits(case, text="{" if why == "another language" else None).old_process.gone = True
    with pytest.raises((lifecycle.UpgradeAborted, status_socket.Refused)):
        case.run()
    assert not [line for line in case.journal if "stop" in line or "close" in line or "systemd" in line]
    assert (case.folder / "vrrp.sock").is_socket()


def test_without_a_status_socket_to_hand_over_there_is_no_upgrade(case):
    (case.folder / "vrrp.sock").write_text("no socket")
    faults = []
    case.run(case.upgrade, lambda: faults.append(case.lifecycle.report()["config_fault"]))
    assert (faults, case.new_processes) == ([NO_SOCKET], [])
