# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The daemon's life: start, signals, reloads and the end. The daemon is a stand-in here, the signals are real."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import socket
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._agent.config.file import Found
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import status_socket
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import MILLION
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import lifecycle
from support.vrrp.lifecycles import (
    BEGIN,
    END,
    INSTANCE,
    LEFT,
    LIMIT,
    first_of,
)


def test_the_checks_process_starts_before_this_one_is_real_time_and_systemd_is_notified_last(case):
    case.run()
    assert case.journal[: len(BEGIN)] == BEGIN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_each_signal_that_ends_it_stops_it_gracefully(case, number):
    began = time.monotonic()
    case.run(end=number)
    assert case.journal == [*BEGIN, "daemon: leave", *END]
    assert time.monotonic() - began < LIMIT / MILLION


def test_a_router_that_resigns_serves_until_it_is_not_needed_and_takes_no_new_settings(case):
    served = []
    case.linger = served.append
    one = case.run(case.term, case.hup, first_of(served), end=None)
    assert case.journal == [*BEGIN, "daemon: leave", *END]
    assert not one.loop.running


def test_addresses_that_could_not_be_removed_are_not_said_to_be_given_up(case):
    case.left = ["192.0.2.10/32"]
    case.run()
    assert case.journal[-1] == (
        "says 192.0.2.10/32 could not be removed, and another host may have it by now: remove it by hand."
    )


def test_a_second_signal_stops_it_at_once(case):
    case.linger = lambda gone: None
    case.run(case.term)
    assert case.journal == [*BEGIN, "daemon: leave", *END]


def test_what_cannot_be_had_is_said_and_reported(case):
    case.limits = ["real-time scheduling: Operation not permitted"]
    one = case.run()
    assert "says real-time scheduling: Operation not permitted" in case.journal
    assert one.report()["limits"] == case.limits


def test_a_reload_goes_over_to_what_the_file_says_and_tells_systemd(case):
    case.run(lambda: case.write(priority=7), case.hup)
    assert case.journal[len(BEGIN) : -len(END)] == [
        "systemd: reloading",
        "daemon: apply 7",
        f"says {case.path} is in force.",
        "systemd: ready",
        "daemon: leave",
    ]


def test_a_bad_file_changes_nothing_and_is_said_and_reported_until_there_is_a_good_one(case):
    faults = []

    def look():
        faults.append(one.report()["config_fault"])

    wanted = case.write()
    one = lifecycle.Lifecycle(str(case.path), case.log, case.notifier)
    one.run = lambda _wanted: None  # only its reload is of interest
    one.daemon.settings = wanted
    one.status_socket = status_socket.StatusServer(one.loop, wanted.status_socket, one.report)
    look()
    for text in ('{"instances": [', json.dumps({"instances": [{**INSTANCE, "vrid": 300}]})):
        case.path.write_text(text)
        one.reload()
        look()
    case.write(priority=8)
    one.reload()
    look()
    one.status_socket.close()
    assert faults[0] is None
    assert "is not JSON" in faults[1]
    assert "vrid is 300" in faults[2]
    assert faults[3] is None
    said = [line for line in case.journal if "refused" in line]
    assert [fault in line for fault, line in zip(faults[1:3], said)] == [True, True]
    assert [line for line in case.journal if line.startswith("daemon")] == ["daemon: apply 8"]


def test_systemd_is_notified_that_a_refused_reload_is_over(case):
    """Otherwise `systemctl reload` would wait for it."""
    case.run(lambda: case.path.write_text("{"), case.hup)
    notified = [line for line in case.journal if line.startswith("systemd")]
    assert notified == ["systemd: ready", "systemd: reloading", "systemd: ready", "systemd: stopping"]


def test_a_file_that_is_gone_changes_nothing(case):
    case.run(case.path.unlink, case.hup)
    assert not [line for line in case.journal if "apply" in line]
    assert [line for line in case.journal if "cannot be read: No such file or directory" in line]


def test_another_status_socket_takes_the_place_of_the_first(case):
    there = []

    def look():
        there.append(sorted(path.name for path in case.folder.glob("*.sock")))

    case.run(look, lambda: case.write(socket_name="other.sock"), case.hup, look)
    assert there == [["vrrp.sock"], ["other.sock"]]
    assert not list(case.folder.glob("*.sock"))


def test_a_status_socket_that_cannot_be_had_refuses_the_reload_and_the_first_one_stays(case):
    (case.folder / "busy.sock").write_text("no socket")
    there = []
    one = case.run(
        lambda: case.write(socket_name="busy.sock", priority=7),
        case.hup,
        lambda: there.append((case.folder / "vrrp.sock").is_socket()),
    )
    assert there == [True]
    assert "is not a socket, but something else" in one.report()["config_fault"]
    assert not [line for line in case.journal if "apply" in line]


def test_without_a_status_socket_the_addresses_are_served_and_the_lack_is_logged(case):
    busy = case.folder / "vrrp.sock"
    busy.write_text("no socket")
    one = case.run()
    assert case.journal[1].startswith(
        f"says status reports: {busy} is not a socket, but something else: remove it, or "
    )
    assert [case.journal[0], *case.journal[2:]] == [*BEGIN, "daemon: leave", *END]
    assert one.report()["limits"] == [case.journal[1][len("says ") :]]
    assert busy.read_text() == "no socket"


def test_a_reload_opens_the_status_socket_that_could_not_be_had_and_does_not_depend_on_it(case):
    busy, found = case.folder / "vrrp.sock", []
    busy.write_text("no socket")

    def look():
        found.append((case.lifecycle.report()["config_fault"], len(case.lifecycle.report()["limits"])))

    case.run(lambda: case.write(priority=7), case.hup, look, busy.unlink, case.hup, look)
    assert found == [(None, 1), (None, 0)]
    assert case.journal.count("daemon: apply 7") == 2


def test_two_reloads_at_once_are_one(case):
    case.run(lambda: (case.hup(), case.hup()))
    assert case.journal.count("daemon: apply 100") == 1


def test_an_end_that_is_asked_for_together_with_a_reload_is_the_end(case):
    def both():
        for number in (signal.SIGHUP, signal.SIGTERM):
            os.kill(os.getpid(), number)

    case.run(both, end=None)
    assert case.journal == [*BEGIN, "daemon: leave", *END]


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_for_another_version_it_ends_with_its_addresses_in_place_and_waits_for_no_program(case, number):
    one = case.run(lambda: case.upgrade(number), end=None)
    assert case.journal == [*BEGIN, "daemon: advertise", "systemd: stopping", "network: close", LEFT]
    assert not one.loop.running and not list(case.folder.glob("*.sock"))


def test_a_restart_that_follows_at_once_takes_no_address_away(case):
    def both():
        for number in (signal.SIGTERM, signal.SIGUSR1):
            os.kill(os.getpid(), number)

    case.run(both, end=None)
    assert case.journal == [*BEGIN, "daemon: advertise", "systemd: stopping", "network: close", LEFT]


def test_a_router_that_resigns_gives_its_addresses_up_whatever_is_said_then(case):
    served = []
    case.linger = served.append
    case.run(case.term, case.upgrade, first_of(served), end=None)
    assert case.journal == [*BEGIN, "daemon: leave", *END]


def test_a_start_that_fails_leaves_nothing_behind(case):
    case.start_fails = True
    with pytest.raises(OSError, match="no kernel"):
        case.run()
    assert case.journal[-len(END) :] == END
    assert not list(case.folder.glob("*.sock"))


def test_a_callback_that_fails_ends_it_in_good_order(case):
    def fail():
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        case.run(fail)
    assert case.journal == [*BEGIN, *END]


def test_the_report_has_exactly_what_was_agreed(case):
    one = case.run()
    report = one.report()
    assert report.pop("since") == one.since
    assert report == {
        "agent": "onprem.lb",
        "version": VERSION,
        "pid": os.getpid(),
        "config": str(case.path),
        "config_sha256": hashlib.sha256(case.path.read_bytes()).hexdigest(),
        "config_fault": None,
        "limits": [],
        "instances": ["front"],
    }


def test_a_file_that_has_changed_since_it_was_read_is_not_in_force(case):
    def change():
        read.append(case.path.read_bytes())
        case.path.write_text("{}")

    read = []
    one = case.run(change)
    assert one.report()["config_sha256"] == hashlib.sha256(read[0]).hexdigest()


def test_systemds_watchdog_is_fed_by_the_loop_itself(case):
    case.notifier.watchdog = 10_000
    case.run(*[lambda: None] * 5)
    assert case.journal.count("systemd: alive") >= 5


def test_without_a_watchdog_no_keep_alive_is_sent(case):
    case.run()
    assert "systemd: alive" not in case.journal


# --- main -------------------------------------------------------------------------------------------------------


def runs(case):
    return lifecycle.main(str(case.path), Found("", case.write(), []), case.log, case.notifier)


def test_two_agents_at_one_socket_are_one_too_many(case):
    wanted = case.write()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(wanted.status_socket)
        other.listen(1)
        assert runs(case) == 1
    assert [line for line in case.journal if "another agent answers" in line]
    assert "daemon: start" not in case.journal


def test_without_a_network_there_is_one_sentence(case, monkeypatch):
    def refuse():
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(lifecycle, "Network", refuse)
    assert runs(case) == 1
    assert case.journal == ["says The network cannot be had: Operation not permitted."]


def test_an_agent_that_was_asked_to_end_exits_with_0(case, monkeypatch):
    monkeypatch.setattr(lifecycle.Lifecycle, "run", lambda self, wanted: self.loop.close())
    assert runs(case) == 0
