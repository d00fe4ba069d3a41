# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computations in processes of their own."""

from __future__ import annotations

import os

from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.background import SUCCESS, Background
from support.agent.loops import LIMIT, SECOND, run_until
from support.waiting import pause, until


def outcome(loop, compute, timeout=LIMIT):
    """Return what a computation returns, and how it ends."""
    found = []
    Background(loop, "a-test", compute, lambda *outcome: found.append(outcome), timeout)
    assert found == [], "it is never over at once"
    run_until(loop, lambda: found)
    return found[0]


def test_the_result_comes_from_another_process(loop):
    result, ending = outcome(loop, lambda: b"%d" % os.getpid())
    assert int(result) != os.getpid() and ending == SUCCESS
    assert not os.path.exists(f"/proc/{int(result)}")


def test_the_loop_goes_on_meanwhile(loop, tmp_path):
    """The computation ends only after a timer of the loop has run."""
    sign = tmp_path / "sign"

    def compute():
        until(sign.exists)
        return b"x" * (32 << 20)

    loop.after(SECOND // 10, sign.touch)
    assert outcome(loop, compute) == (b"x" * (32 << 20), SUCCESS)


def test_it_is_killed_when_its_time_is_over(loop):
    assert outcome(loop, lambda: pause(600), timeout=SECOND // 10) == (b"", "signal 9")


def test_a_failure_is_no_success(loop, capfd):
    assert outcome(loop, lambda: 1 // 0) == (b"", "exit code 1")
    assert "ZeroDivisionError" in capfd.readouterr().err
