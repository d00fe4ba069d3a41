# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of ``member_lock``: which run this is, and whether the run that holds the lock has died."""

from __future__ import annotations

import getpass
import os
import re
import socket
import time
import uuid
from pathlib import Path
from typing import Any, Dict, Optional

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.onprem.lb.plugins.plugin_utils.play_hosts import play_fault
from ansible_collections.onprem.lb.plugins.plugin_utils.printed import cause_in

MODULE = "onprem.lb.member_lock"
BOOT = Path("/proc/sys/kernel/random/boot_id")
PROCESSES = Path("/proc/self/ns/pid")
MAX_TEXT = 100

# What Ansible says of a Python that it does not find, or that is too old for the module.
NO_PYTHON = re.compile(
    r"interpreter.* was not found|set the interpreter|python[\d.]*'?: (command )?(not found|No such file)"
)
OLD_PYTHON = re.compile(
    r"(?:minimum of Python version|requires Python) (?P<wanted>[\d.]*\d)|future feature annotations|SyntaxError"
)
OLDEST_PYTHON = "3.8"  # of this collection; ansible-core may want a newer one
# What Ansible, sudo or su says where nobody becomes root, and the mend.
REFUSED = {
    re.compile(r"(Missing|Incorrect) \w+ password|password is required|Authentication failure"): (
        "give the password with --ask-become-pass."
    ),
    re.compile(r"not in the sudoers file|is not allowed to (execute|run sudo)|may not run sudo"): (
        "allow that there with visudo, or set ansible_user to one who may become root."
    ),
    re.compile(r"\bsudo: (command )?not found"): "install sudo there, or set ansible_become_method.",
}

Record = Dict[str, Any]


class ActionModule(ActionBase):
    """Takes or releases the lock of a host."""

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """Run the module, and once more if the lock is of a dead run, or to be broken.

        It is the first one that a run needs the host for, so it says in a sentence why the host cannot be used.
        """
        result: Dict[str, Any] = super().run(tmp, task_vars)
        known = task_vars or {}
        name = str(self._task.delegate_to or known.get("inventory_hostname", "The host"))
        began = time.time()
        unfit = play_fault(self._task.play) if self._task.args.get("state") != "absent" else ""
        if unfit:
            return {**result, "failed": True, "msg": f"{name}: {unfit}"}
        try:
            result.update(self._take_or_release(known), at=began)
        except AnsibleError as error:
            if self._task.args.get("state") == "absent":
                raise  # as an unreachable host, which the task ignores
            result.update(failed=True, msg=f"{name} cannot be reached as root: {cause(str(error))}")
            result["answered"] = not isinstance(error, AnsibleConnectionFailure)
        else:
            if result.get("held_by") is not None:
                variable = self._task.args.get("break_variable")
                result.update(failed=True, msg=refusal(name, result["held_by"], variable))
            elif result.get("failed"):
                result["msg"] = f"{name}: {failure(result)}"
        return result

    def _take_or_release(self, known: Dict[str, Any]) -> Dict[str, Any]:
        arguments = dict(self._task.args)
        # The worker's parent is ansible-playbook, which lives as long as the run.
        arguments["holder"] = record_of(os.getppid(), str(arguments.get("purpose", "")))
        arguments["downgrades"] = self._is_true("downgrade_variable", known)
        done: Dict[str, Any] = self._execute_module(MODULE, arguments, task_vars=known)
        other = done.get("held_by")
        if other is not None and (self._is_true("break_variable", known) or has_died(other)):
            done = self._execute_module(MODULE, {**arguments, "replaces": other}, task_vars=known)
        return done

    def _is_true(self, option: str, known: Dict[str, Any]) -> bool:
        """Return whether the variable that an option names is true."""
        value = known.get(self._task.args.get(option) or "", False)
        return bool(boolean(self._templar.template(value), strict=False))


def failure(result: Dict[str, Any]) -> str:
    """Return in one line why the module failed, and what to do about its Python."""
    said = " ".join(str(result.get("msg", "")).split())
    output = "\n".join(str(result.get(key, "")) for key in ("module_stdout", "module_stderr")).strip()
    everything = f"{said}\n{output}"
    mend = "there, or name one in ansible_python_interpreter."
    if NO_PYTHON.search(everything):
        return f"Ansible finds no Python: install python3 {mend}"
    old = OLD_PYTHON.search(everything)
    if old:
        return f"its Python is too old: install Python {old['wanted'] or OLDEST_PYTHON} or later {mend}"
    return f"the module did not run: {cause(' '.join(cause_in(output)))}" if output else cause(said)


def cause(text: str) -> str:
    """Return a message of Ansible or of sudo in one line, with what to do where nobody becomes root."""
    line = " ".join(text.split())
    mends = [mend for refused, mend in REFUSED.items() if refused.search(line)]
    return f"{line.rstrip('.')}: {mends[0]}" if mends else line


def record_of(pid: int, purpose: str) -> Record:
    """Return the record of a run on this controller; see ``_host/write/lock.py``."""
    known = {
        "controller": socket.gethostname(),
        "boot": boot(),
        "started": started(pid) or "",
        "user": _user(),
        "purpose": purpose,
        "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
    }
    return {"pid": pid, **{key: _text(value) for key, value in known.items()}}


def boot() -> str:
    """Return what tells this controller's processes from all others: its boot, and its set of process numbers, which
    containers have of their own. Where the system does not say so, another text that only this machine has."""
    if not BOOT.exists():
        return f"{socket.gethostname()} {uuid.getnode():x}"
    return f"{BOOT.read_text(encoding='ascii').strip()} {os.readlink(PROCESSES)}"


def started(pid: int) -> Optional[str]:
    """Return when a process started, in the kernel's ticks, or '' if it has ended; None if the system does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # proc(5), from the state on, field 3: the name may have spaces
    return "" if fields[0] == "Z" else fields[19]


def has_died(other: Record) -> bool:
    """Whether a run is known to have died: it was on this controller, and its process is gone.

    Of what cannot be known, such as another user's process that /proc hides, the answer is no.
    """
    if not BOOT.exists() or other.get("boot") != boot():
        return False
    try:
        os.kill(other["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it belongs to another user
    return started(other["pid"]) not in (None, other["started"])


def refusal(name: str, other: Record, variable: Optional[str]) -> str:
    """Return the sentence that says who holds the lock, and what to do.

    :param other: the record; {} if it cannot be understood
    """
    if other:
        what = (
            f"{name} is locked: {other['user']} on {other['controller']} began {other['purpose'] or 'a run'} "
            f"at {other['since']}, as process {other['pid']}. Wait until that run has ended."
        )
    else:
        what = f"{name} is locked: /run/onprem-lb.lock is there, but it names no run."
    return f"{what} If it has died, add -e {variable}=true." if variable else what


def _text(value: str) -> str:
    """Return a text that any member accepts in a record."""
    return "".join(letter for letter in value if letter.isprintable())[:MAX_TEXT]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
