# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of it: checks in processes of their own, as the VRRP process sees them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import (
    HTTP,
    HTTPS,
    INTERFACE,
    PROCESS,
    SCRIPT,
    TCP,
    Check,
)
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import accounts
from support.agent.certificates import Certificate
from support.agent.checks import AGAIN, Vrrp, readable, script, track
from support.agent.loops import LIMIT, SECOND, run_until
from support.agent.programs import ME, alive, pids, text
from support.agent.servers import Server, answering, secured


def test_every_kind_of_check_answers_at_once(vrrp, tmp_path):
    with Server(answering(b"HTTP/1.1 503 No\r\n\r\n")) as server, socket.create_server(("127.0.0.1", 0)) as plain:
        vrrp.apply(
            Check("tcp", TCP, address="127.0.0.1", port=plain.getsockname()[1]),
            Check("http", HTTP, address="127.0.0.1", port=server.port, timeout=LIMIT),
            Check("process", PROCESS, process="no-such-process"),
            script("exit 2"),
            track(tmp_path, 7)[1],
            Check("eth0", INTERFACE, interface="eth0"),
        )
        run_until(vrrp.loop, lambda: len(vrrp.results) == 5)
    assert sorted(vrrp.results) == [
        Result("http", False, 0, "status 503"),
        Result("process", False, 0, "no process no-such-process"),
        Result("script", False, 0, "exit code 2"),
        Result("tcp", True, 0, "connected"),
        Result("track", False, 7, ""),
    ]


def test_a_check_that_this_python_cannot_make_is_down_and_the_others_go_on(loop, tmp_path, monkeypatch):
    """Some have no ssl."""
    monkeypatch.setitem(sys.modules, "ssl", None)
    vrrp = Vrrp(loop)
    try:
        https = Check("https", HTTPS, address="127.0.0.1", port=443)
        vrrp.apply(https, track(tmp_path, 7)[1])
        assert vrrp.hears("https", up=False).detail.startswith("cannot be checked: ")
        assert vrrp.runs == []
        vrrp.apply(https._replace(every=True), track(tmp_path, 7)[1])
        run_until(loop, lambda: [run.detail[:17] for run in vrrp.runs] == ["cannot be checked"])
        assert vrrp.hears("track", value=7)
        vrrp.apply(script("exit 0"))
        assert vrrp.hears("script", up=True)
    finally:
        vrrp.checks.stop()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
def test_tls_is_checked_whoever_may_read_python_and_whenever_it_is_asked_for(vrrp, tmp_path):
    """The checks run as the user nobody, who may not read Python where it is root's."""
    certificate = Certificate(tmp_path, "DNS:site.example")
    answers = secured(certificate, answering(b"HTTP/1.1 200 OK\r\n\r\n"))
    with socket.create_server(("127.0.0.1", 0)) as plain, Server(answers) as server:
        first = Check("tcp", TCP, address="127.0.0.1", port=plain.getsockname()[1])
        vrrp.apply(first)
        vrrp.hears("tcp", up=True)
        before = vrrp.checks.network_pid
        https = Check("https", HTTPS, address="127.0.0.1", port=server.port, host="site.example", timeout=LIMIT)
        vrrp.apply(first, https)
        assert vrrp.hears("https").detail == "status 200"
        assert vrrp.checks.network_pid != before and [result.up for result in vrrp.results] == [True, True]


def test_each_change_is_reported_once(vrrp, tmp_path):
    mark = tmp_path / "mark"
    vrrp.apply(script(f"test -e {mark}"))
    vrrp.hears("script", up=False)
    vrrp.hears_nothing()
    mark.touch()
    vrrp.hears("script", up=True)
    vrrp.hears_nothing()
    mark.unlink()
    run_until(vrrp.loop, lambda: len(vrrp.results) == 3)
    assert vrrp.results[-1] == Result("script", False, 0, "exit code 1")


def test_a_script_without_a_user_runs_as_the_script_user(vrrp, tmp_path, monkeypatch):
    vrrp.checks.apply([script("true", "theirs"), script("true", "own", user=ME)], "no-such-user")
    vrrp.hears("own", up=True)
    if accounts.may_change():
        assert vrrp.hears("theirs", up=False).detail == "cannot run /bin/sh: there is no user no-such-user"


def test_a_removed_check_is_neither_run_nor_reported(vrrp, tmp_path):
    mark = tmp_path / "pid"
    path, file = track(tmp_path)
    vrrp.apply(file, script(f"echo $$ >{mark}; exec sleep 60", timeout=60 * SECOND))
    vrrp.hears("track")
    run_until(vrrp.loop, lambda: pids(mark))
    vrrp.apply()
    run_until(vrrp.loop, lambda: not alive(pids(mark)[0]))
    path.write_text("1", encoding="ascii")
    vrrp.hears_nothing()


def test_what_has_not_changed_goes_on_undisturbed(vrrp, tmp_path):
    runs = tmp_path / "runs"
    steady = script(f"echo run >>{runs}; exit 1", interval=60 * SECOND)
    vrrp.apply(steady)
    vrrp.hears("script", up=False)
    path, file = track(tmp_path)
    vrrp.apply(file, steady)
    vrrp.hears("track", value=0)
    vrrp.hears_nothing()
    assert text(runs) == "run\n"


def test_what_has_changed_begins_anew(vrrp):
    vrrp.apply(script("exit 1", fall=3))
    vrrp.hears("script", up=False)
    vrrp.apply(script("exit 0", rise=3))
    assert vrrp.hears("script", up=True).detail == "exit code 0"
    assert len(vrrp.results) == 2


def test_the_late_result_of_what_has_changed_is_not_taken_for_the_new_ones(vrrp, tmp_path):
    path, file = track(tmp_path, 1)
    other = tmp_path / "other"
    other.write_text("2", encoding="ascii")
    vrrp.apply(file)
    vrrp.hears("track", value=1)
    path.write_text("9", encoding="ascii")
    connection = vrrp.checks._local._process.connection
    while not readable(connection):
        pass
    vrrp.apply(file._replace(file=str(other)))
    vrrp.hears("track", value=2)
    assert [result.value for result in vrrp.results] == [1, 2]


def test_when_the_process_dies_it_is_started_again_with_all_checks(vrrp, tmp_path):
    path, file = track(tmp_path)
    vrrp.apply(file)
    vrrp.hears("track", value=0)
    before = vrrp.checks.pid
    os.kill(before, signal.SIGKILL)
    run_until(vrrp.loop, lambda: vrrp.checks.pid not in (0, before) and vrrp.messages)
    assert vrrp.messages == ["The process vrrp-checks has ended (signal 9) and is started again."]
    vrrp.hears_nothing()
    assert len(vrrp.results) == 1  # it is as it was
    path.write_text("3", encoding="ascii")
    vrrp.hears("track", value=3)
    assert not os.path.exists(f"/proc/{before}")


def test_a_failure_counts_as_one_in_a_process_that_was_started_again(vrrp, tmp_path):
    works = tmp_path / "works"
    works.touch()
    once = Check("once", SCRIPT, interval=AGAIN, fall=1000, command=("/usr/bin/test", "-e", str(works)), every=True)
    vrrp.checks.apply((once,), ME)
    vrrp.hears("once")
    works.unlink()
    os.kill(vrrp.checks.pid, signal.SIGKILL)
    runs = len(vrrp.runs)
    run_until(vrrp.loop, lambda: len(vrrp.runs) > runs + 2)
    vrrp.hears_nothing()
    assert [result.name for result in vrrp.results] == ["once"], "one failure of a thousand is none"


def test_a_change_while_there_was_no_process_is_reported(vrrp, tmp_path):
    path, file = track(tmp_path)
    vrrp.apply(file)
    vrrp.hears("track", value=0)
    os.kill(vrrp.checks.pid, signal.SIGSTOP)
    path.write_text("1", encoding="ascii")
    os.kill(vrrp.checks.pid, signal.SIGKILL)
    vrrp.hears("track", value=1)
