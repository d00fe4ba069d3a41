# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd hears, and that its absence is no trouble."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import sd_notify
from support.waiting import LIMIT_S


@pytest.fixture
def manager():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.settimeout(LIMIT_S)
        yield found


def test_every_state_is_sent_to_a_path(manager, tmp_path):
    path = str(tmp_path / "notify")
    manager.bind(path)
    notifier = sd_notify.Notifier({"NOTIFY_SOCKET": path})
    notifier.ready()
    notifier.status("2 of 3\nActive")
    notifier.alive()
    notifier.stopping()
    said = [manager.recv(200).decode() for _count in range(4)]
    assert said == ["READY=1", "STATUS=2 of 3 Active", "WATCHDOG=1", "STOPPING=1"]


def test_a_reload_comes_with_its_time_as_notify_reload_wants(manager):
    name = f"@face-{os.getpid()}"
    manager.bind("\0" + name[1:])
    sd_notify.Notifier({"NOTIFY_SOCKET": name}).reloading()
    state, time = manager.recv(200).decode().split("\n")
    assert state == "RELOADING=1" and int(time.partition("MONOTONIC_USEC=")[2]) > 0


@pytest.mark.parametrize("name", ["", "/no/such/socket", "vsock:2:1234", "@nobody-listens-here"])
def test_without_systemd_nothing_happens(name):
    notifier = sd_notify.Notifier({"NOTIFY_SOCKET": name})
    notifier.ready()
    notifier.reloading()
    assert notifier.watchdog is None


def test_a_manager_that_does_not_read_is_not_waited_for(manager, tmp_path):
    path = str(tmp_path / "notify")
    manager.bind(path)
    notifier = sd_notify.Notifier({"NOTIFY_SOCKET": path})
    for _count in range(5000):  # more than any queue of datagrams holds
        notifier.alive()


def test_programs_that_are_started_do_not_inherit_the_socket():
    environ = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "10", "WATCHDOG_PID": "1", "PATH": "/bin"}
    sd_notify.Notifier(environ)
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "limit, pid, wanted",
    [
        pytest.param("10000000", str(os.getpid()), 5_000_000, id="for this process"),
        ("10000000", "", 5_000_000),
        ("10000000", "1", None),
        ("0", "", None),
        ("", "", None),
        ("soon", "", None),
    ],
)
def test_a_sign_of_life_is_given_twice_in_the_watchdogs_time(limit, pid, wanted):
    assert sd_notify.Notifier({"WATCHDOG_USEC": limit, "WATCHDOG_PID": pid}).watchdog == wanted


def test_a_container_has_a_file_in_place_of_a_watchdog(tmp_path):
    file = tmp_path / "alive"
    environ = {sd_notify.ALIVE: str(file), "PATH": "/bin"}
    notifier = sd_notify.Notifier(environ)
    assert notifier.watchdog == sd_notify.TOUCH_EVERY and environ == {"PATH": "/bin"}
    notifier.alive()
    os.utime(file, (1, 1))
    notifier.alive()
    assert file.stat().st_mtime > 1


def test_a_file_that_cannot_be_touched_does_not_say_that_this_process_is_dead(tmp_path, monkeypatch):
    file = tmp_path / "alive"
    file.touch()

    def full(*_path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sd_notify.os, "utime", full)
    sd_notify.Notifier({sd_notify.ALIVE: str(file)}).alive()
    assert not file.exists()
    sd_notify.Notifier({sd_notify.ALIVE: str(tmp_path / "none" / "alive")}).alive()
