# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A check that is run once, as its router would run it, and why it fails."""

from __future__ import annotations

import getpass
import os
import pwd
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import check_runs
from support.agent.programs import text
from support.waiting import LIMIT_S, until

ME = getpass.getuser()


def fault(command, timeout=LIMIT_S, user=ME):
    return check_runs.fault({"command": command, "timeout": timeout, "user": user})


@pytest.mark.parametrize(
    "command, why",
    [
        ("/usr/bin/true", ""),
        ("/usr/bin/false", "fails with exit code 1"),
        ("/bin/sh -c 'echo no; echo  volume >&2; exit 3'", "fails with exit code 3, and prints: no volume"),
        ("/bin/sh -c 'kill -9 $$'", "ends with signal 9"),
        ("/nowhere --quick", f"cannot be run as {ME}: No such file or directory"),
        ("/usr/bin/true 'a", f"cannot be run as {ME}: a quote has no end: close it"),
        ("/bin/sh -c '[ \"$(pwd)\" = / ] && [ -n \"$HOME\" ] && ! read line'", ""),
    ],
)  # fmt: skip
def test_a_check_says_why_it_fails(command, why):
    assert fault(command) == why


def test_what_it_prints_is_one_line_of_some_length():
    said = fault("/bin/sh -c 'yes word | head -n 1000; exit 1'").partition("prints: ")[2]
    assert said.startswith("word word word") and len(said) == check_runs.PRINTED


def test_one_that_takes_longer_than_its_timeout_is_ended_with_all_that_it_has_started(tmp_path):
    (tmp_path / "check").write_text(f"sleep 600 & echo $! >{tmp_path}/pid; echo waits; wait\n")
    assert fault(f"/bin/sh {tmp_path}/check", timeout=0.5).startswith("takes longer than its timeout of 0.5 s")
    pid = text(tmp_path / "pid").strip()  # none where this machine stood still until the timeout
    until(lambda: not pid or text(Path(f"/proc/{pid}/status")).partition("State:\t")[2][:1] in ("", "Z"))


def test_what_it_leaves_running_does_not_keep_it_from_ending(tmp_path):
    (tmp_path / "check").write_text(
        f"(until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo on >{tmp_path}/on) &\nexit 0\n"
    )
    assert fault(f"/bin/sh {tmp_path}/check") == ""
    (tmp_path / "go").touch()
    until((tmp_path / "on").exists)


def test_a_user_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(check_runs.accounts, "may_change", lambda: True)
    assert fault("/usr/bin/true", user="no-such-user") == "cannot be run as no-such-user: there is no user no-such-user"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_it_runs_as_its_own_user():
    uid = pwd.getpwnam("nobody").pw_uid
    assert fault(f"/bin/sh -c '[ $(id -u) = {uid} ]'", user="nobody") == ""
