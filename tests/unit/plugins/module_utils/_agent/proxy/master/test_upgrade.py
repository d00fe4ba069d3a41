# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one program leaves to the next; ``test_lifecycle`` has whole ones."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master import upgrade
from support.agent.loops import LIMIT, run_until
from support.agent.programs import is_there


@pytest.mark.parametrize(
    "program, wrong",
    [
        ("", None),
        ("raise SystemExit(1)", "it does not take the configuration"),
        ("import os; os.abort()", "it does not take the configuration"),
        ("import time; time.sleep(600)", "it does not say whether it takes the configuration"),
    ],
)
def test_a_trial_tells_how_it_went(loop, monkeypatch, program, wrong):
    monkeypatch.setattr(upgrade, "TEST_TIMEOUT", 300_000 if wrong and "say" in wrong else LIMIT)
    monkeypatch.setattr(
        upgrade, "command_line", lambda: [sys.executable, "-S", "-c", program, "proxy", "--config", "x"]
    )
    found = []
    trial = upgrade.ConfigTest(loop, "/etc/proxy.json", found.append)
    run_until(loop, lambda: bool(found))
    assert found == [wrong] and not is_there(trial._pid)


def test_a_trial_is_the_same_program_that_checks_the_configuration(loop, monkeypatch, tmp_path):
    monkeypatch.setattr(
        upgrade,
        "command_line",
        lambda: [sys.executable, "-S", "-c", f"import sys; open({str(tmp_path / 'said')!r}, 'w').write(repr(sys.argv))",
                 "proxy", "--config", "x"],
    )  # fmt: skip
    found = []
    upgrade.ConfigTest(loop, "/etc/proxy.json", found.append)
    run_until(loop, lambda: bool(found))
    assert (tmp_path / "said").read_text() == "['-c', 'check-config', '--config', '/etc/proxy.json']"


def test_a_process_that_was_not_started_as_a_proxy_cannot_upgrade(loop, monkeypatch):
    monkeypatch.setattr(upgrade, "command_line", lambda: ["pytest"])
    with pytest.raises(ValueError, match="proxy"):
        upgrade.ConfigTest(loop, "/x", print)


def test_a_program_that_is_not_there_leaves_everything_as_it_was(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    gc.collect()  # else what an earlier test has left may be closed meanwhile
    before = os.listdir("/proc/self/fd")
    one, other = socket.socketpair()
    known = {"door": ["/x", one.fileno()], "listeners": [], "hands": []}
    with one, other:
        with pytest.raises(FileNotFoundError):
            upgrade.exec_new_version(known, {})
        assert not os.get_inheritable(one.fileno())
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & set(upgrade.SIGNALS)
    assert len(os.listdir("/proc/self/fd")) == len(before)
