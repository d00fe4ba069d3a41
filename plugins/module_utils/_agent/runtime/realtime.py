# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Being on time beside busy neighbours: real-time scheduling, memory that stays in, no long garbage collection.

Each is worth having without the others, and none is needed: what cannot be had is said, and the agent goes on.
"""

from __future__ import annotations

import gc
import os
from typing import List, Optional

PRIORITY = 10  # any beats all normal processes; the kernel's own threads stay before us, at 50 and above
# Linux numbers these flags anew on two of its architectures.
_UNIT = 0x2000 if os.uname().machine.startswith(("ppc", "sparc")) else 1
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = _UNIT, _UNIT * 2, _UNIT * 4
CAP_IPC_LOCK = 14


def prepare() -> List[str]:
    """Take all that can be had. Return a sentence for each thing that cannot.

    To be called when everything is loaded, and after the fork of whatever is not to be real-time itself.
    """
    _freeze()
    return [missing for missing in (_schedule(), _lock_memory()) if missing]


def _freeze() -> None:
    """What was loaded until now stays: no garbage collection needs to look at it again."""
    gc.collect()
    gc.freeze()


def _schedule() -> Optional[str]:
    """Children are scheduled normally: SCHED_RESET_ON_FORK."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except OSError as error:
        return f"real-time scheduling: {error.strerror} (it wants CAP_SYS_NICE)"
    return None


def _lock_memory() -> Optional[str]:
    """Keep every page that was once used: ON_FAULT, so that what is never used does not count."""
    # With a limit instead of the right, the call might succeed and a later allocation would fail: worse than none.
    if not _has(CAP_IPC_LOCK):
        return "locking memory: Operation not permitted (it wants CAP_IPC_LOCK)"
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0:
        return f"locking memory: {os.strerror(ctypes.get_errno())}"
    return None


def _has(capability: int) -> bool:
    """Whether this process may do something, by the kernel's own word (proc(5), CapEff)."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        effective = next((line.split()[1] for line in status if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> capability & 1)
