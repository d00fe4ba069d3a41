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
    monkeypatch.setattr(realtime, "GROUP", "/there/is/none")
    monkeypatch.setattr(realtime, "_freeze", lambda: None)


def test_what_is_not_permitted_is_said_and_no_memory_is_locked_up_to_a_limit(refused, monkeypatch):
    # A lock that only the limit allows would let a later allocation fail.
    monkeypatch.setitem(sys.modules, "ctypes", None)
    assert realtime.prepare() == [
        "real-time scheduling: Operation not permitted (it needs CAP_SYS_NICE)",
        "locking memory: Operation not permitted (it needs CAP_IPC_LOCK)",
    ]


def test_a_group_without_a_budget_is_not_asked(tmp_path, monkeypatch):
    """With CONFIG_RT_GROUP_SCHED the kernel refuses it there, whatever the capabilities: in most containers."""
    asked = []
    monkeypatch.setattr(realtime.os, "sched_setscheduler", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(realtime, "GROUP", str(tmp_path))
    budget = tmp_path / "cpu.rt_runtime_us"
    budget.write_text("0\n")
    said = "real-time scheduling: the control group has no budget for it (cpu.rt_runtime_us is 0)"
    assert (realtime.schedule(), asked) == (said, [])
    budget.write_text("950000\n")
    assert realtime.schedule() is None and len(asked) == 1


def test_the_group_is_the_own_one_before_the_root(tmp_path, monkeypatch):
    monkeypatch.setattr(realtime, "GROUP", str(tmp_path))
    monkeypatch.setattr(realtime, "_own_group", lambda: "/kubepods/pod1")
    (tmp_path / "cpu.rt_runtime_us").write_text("950000\n")
    assert realtime._budget() == "950000"  # a container sees its group as the root
    (tmp_path / "kubepods" / "pod1").mkdir(parents=True)
    (tmp_path / "kubepods" / "pod1" / "cpu.rt_runtime_us").write_text("0\n")
    assert realtime._budget() == "0"


def test_who_has_the_capability_does_not_lack_it(refused, monkeypatch):
    monkeypatch.setattr(realtime, "_has", lambda capability: capability == realtime.CAP_SYS_NICE)
    said = realtime.schedule()
    assert said.endswith("Operation not permitted (with CAP_SYS_NICE: the control group or seccomp forbids it)")


@pytest.mark.skipif(not os.path.exists("/sys/fs/cgroup/cpu/cpu.rt_runtime_us"), reason="no budgets of real-time here")
def test_the_kernel_knows_the_own_group():
    assert realtime._budget().lstrip("-").isdecimal()


def test_a_capability_is_read_from_the_kernel():
    with open("/proc/self/status", encoding="ascii") as status:
        mask = int(next(line.split()[1] for line in status if line.startswith("CapEff:")), 16)
    having = [bit for bit in range(41) if mask & 1 << bit]
    assert [bit for bit in range(41) if realtime._has(bit)] == having
