# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs for the tests of the checks, and nothing left behind."""

from __future__ import annotations

import os
import signal

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import checks_process
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.subprocesses import Children
from support.agent.checks import Vrrp
from support.agent.loops import LIMIT, run_until


@pytest.fixture
def children(loop):
    """Programs of this very process; what still runs at the end is killed."""
    children = Children(loop)
    yield children
    children.kill()
    run_until(loop, lambda: not children.running)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A process that a busy machine stops for seconds is not taken for hung."""
    monkeypatch.setattr(checks_process, "MAX_SILENCE", LIMIT)


@pytest.fixture
def vrrp(loop):
    vrrp = Vrrp(loop)
    yield vrrp
    pids = [vrrp.checks.pid, vrrp.checks.network_pid]
    vrrp.checks.stop()
    assert not [pid for pid in pids if pid and os.path.exists(f"/proc/{pid}")]
