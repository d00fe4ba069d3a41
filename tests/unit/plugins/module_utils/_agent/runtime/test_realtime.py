# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agent does to be on time, and what it says where it may not. The real thing is done by a child."""

from __future__ import annotations

import errno
import gc
import os
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import realtime
from support.agent.programs import in_a_child


def prepared():
    limits = realtime.prepare()
    reading, writing = os.pipe()
    grandchild = os.fork()
    if grandchild == 0:
        os.write(writing, str(os.sched_getscheduler(0)).encode())
        os._exit(0)
    os.waitpid(grandchild, 0)
    with open("/proc/self/status", encoding="ascii") as status:
        locked = next(int(line.split()[1]) for line in status if line.startswith("VmLck:"))
    own = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    return {
        "limits": limits,
        "own": own,
        "childs": int(os.read(reading, 9)),
        "locked": locked,
        "frozen": gc.get_freeze_count(),
    }


def test_what_is_not_complained_about_is_in_force():
    found = in_a_child(prepared)
    complaints = " ".join(found["limits"])
    assert (found["own"] == os.SCHED_RR) == ("real-time scheduling" not in complaints)
    assert (found["locked"] > 0) == ("locking memory" not in complaints)
    assert found["frozen"] > 1000
    assert found["childs"] == os.SCHED_OTHER


@pytest.fixture
def refused(monkeypatch):
    def schedule(*_arguments):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(realtime.os, "sched_setscheduler", schedule)
    monkeypatch.setattr(realtime, "_has", lambda capability: False)
    monkeypatch.setattr(realtime, "_freeze", lambda: None)


def test_what_is_not_permitted_is_said_and_no_memory_is_locked_up_to_a_limit(refused, monkeypatch):
    # A lock that only the limit allows would let a later allocation fail.
    monkeypatch.setitem(sys.modules, "ctypes", None)
    assert realtime.prepare() == [
        "real-time scheduling: Operation not permitted (it needs CAP_SYS_NICE)",
        "locking memory: Operation not permitted (it needs CAP_IPC_LOCK)",
    ]


def test_a_capability_is_read_from_the_kernel():
    with open("/proc/self/status", encoding="ascii") as status:
        mask = int(next(line.split()[1] for line in status if line.startswith("CapEff:")), 16)
    having = [bit for bit in range(41) if mask & 1 << bit]
    assert [bit for bit in range(41) if realtime._has(bit)] == having
