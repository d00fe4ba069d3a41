# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of ``member_lock``: which run this is, and whether the run that holds the lock has died."""

from __future__ import annotations

import getpass
import os
import socket
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

MODULE = "onprem.lb.member_lock"
BOOT, PROCESSES = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"

Record = Dict[str, Any]


class ActionModule(ActionBase):
    """Takes or releases the lock of a host."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """Run the module, and once more if the lock is of a dead run, or to be broken."""
        result: Dict[str, Any] = super().run(tmp, task_vars)
        arguments, known = dict(self._task.args), task_vars or {}
        # The worker's parent is ansible-playbook, which lives as long as the run.
        arguments["holder"] = record_of(os.getppid(), str(arguments.get("purpose", "")))
        result.update(self._execute_module(MODULE, arguments, task_vars=known))
        other = result.get("held_by")
        if other is not None and (has_died(other) or self._may_break(known)):
            result.update(self._execute_module(MODULE, {**arguments, "replaces": other}, task_vars=known))
        if result.get("held_by") is not None:
            name = str(self._task.delegate_to or known.get("inventory_hostname", "The host"))
            result.update(failed=True, msg=refusal(name, result["held_by"], arguments.get("break_variable")))
        return result

    def _may_break(self, known: Dict[str, Any]) -> bool:
        value = known.get(self._task.args.get("break_variable") or "", False)
        return bool(boolean(self._templar.template(value), strict=False))


def record_of(pid: int, purpose: str) -> Record:
    """Return the record of a run on this machine."""
    return {
        "machine": machine(),
        "pid": pid,
        "started": started(pid),
        "user": _user(),
        "purpose": purpose,
        "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
    }


def machine() -> List[str]:
    """Return what tells this machine's processes from all others: its name, its boot, and its set of process numbers.

    Containers may share the first two.
    """
    known = [socket.gethostname()]
    if os.path.exists(BOOT):
        known += [Path(BOOT).read_text(encoding="ascii").strip(), os.readlink(PROCESSES)]
    return known


def started(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; empty if it has ended, or the system does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # proc(5), from the state on, field 3: the name may have spaces
    return "" if fields[0] == "Z" else fields[19]


def has_died(other: Record) -> bool:
    """Whether a run is known to have died: it was on this machine, and its process is gone."""
    pid = other.get("pid")
    if other.get("machine") != machine() or not isinstance(pid, int) or pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it belongs to another user
    return started(pid) != other.get("started")


def refusal(name: str, other: Record, variable: Optional[str]) -> str:
    """Return the sentence that says who holds the lock, and what to do."""
    where = other.get("machine") or ["an unknown machine"]
    what = (
        f"{name} is locked: {other.get('user', 'somebody')} on {where[0]} began {other.get('purpose') or 'a run'} "
        f"at {other.get('since', 'an unknown time')}, as process {other.get('pid', 'unknown')}."
    )
    mend = f" If it has died there, add -e {variable}=true." if variable else ""
    return f"{what} Wait until that run has ended.{mend}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
