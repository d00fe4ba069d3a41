# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the daemon on time on a busy host: real-time scheduling, locked memory, no long garbage collections.

Each helps without the others and none is required: the agent reports what is not permitted, and goes on.
"""

from __future__ import annotations

import contextlib
import gc
import os
from typing import List, Optional

PRIORITY = 10  # above all normal processes, and below the kernel's own threads, which have 50 and above
# PowerPC and SPARC have other values.
_UNIT = 0x2000 if os.uname().machine.startswith(("ppc", "sparc")) else 1
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = _UNIT, _UNIT * 2, _UNIT * 4
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
GROUP = "/sys/fs/cgroup/cpu"  # of cgroup v1, whose groups have a budget of real-time each (CONFIG_RT_GROUP_SCHED)
BUDGET = "cpu.rt_runtime_us"
FORBIDDEN = "with CAP_SYS_NICE: the control group or seccomp"


def prepare() -> List[str]:
    """Request all of them; return a sentence for each that is not available.

    Call this when everything is loaded, and after forking the processes that must not be real-time.
    """
    _freeze()
    return [missing for missing in (schedule(), _lock_memory()) if missing]


def _freeze() -> None:
    """Exclude everything loaded so far from garbage collection."""
    gc.collect()
    gc.freeze()


def schedule() -> Optional[str]:
    """Children are scheduled normally, because of SCHED_RESET_ON_FORK.

    A control group without a budget of real-time is not asked for it: the kernel refuses it there, to root as well.
    """
    if _budget() == "0":
        return f"real-time scheduling: the control group has no budget for it ({BUDGET} is 0)"
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except OSError as error:
        return f"real-time scheduling: {error.strerror} ({_lacks()})"
    return None


def _lacks() -> str:
    """Return what is missing: the capability, or what only the host can grant to those who have it."""
    return f"{FORBIDDEN} forbids it" if _has(CAP_SYS_NICE) else "it needs CAP_SYS_NICE"


def _budget() -> str:
    """Return the microseconds of real-time that the own control group has in each period; '' if that is not known.

    A container may see its own group as the root of the tree, or the tree of its host.
    """
    for folder in dict.fromkeys((_own_group(), "")):
        with contextlib.suppress(OSError), open(f"{GROUP}{folder}/{BUDGET}", encoding="ascii") as file:
            return file.read().strip()
    return ""


def _own_group() -> str:
    """Return the path of the own group in the tree of the controller cpu; '' if there is none."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
        groups = (line.rstrip("\n").split(":", 2) for line in file)
        return next((each[2].rstrip("/") for each in groups if "cpu" in each[1].split(",")), "")
    return ""


def _lock_memory() -> Optional[str]:
    """Keep every page in memory once it was used; with ON_FAULT unused pages do not count."""
    # Without the capability but with a limit, the call might succeed and a later allocation fail: worse than none.
    if not _has(CAP_IPC_LOCK):
        return "locking memory: Operation not permitted (it needs CAP_IPC_LOCK)"
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0:
        return f"locking memory: {os.strerror(ctypes.get_errno())}"
    return None


def _has(capability: int) -> bool:
    """Whether this process has a capability (proc(5), CapEff)."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        effective = next((line.split()[1] for line in status if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> capability & 1)
