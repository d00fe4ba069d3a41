# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a journal of a run, and kills the run at a task. Ansible loads this as a callback.

Environment:
INTERRUPTION_JOURNAL  the file to append to, one JSON object in each line: what `journal.read` reads
INTERRUPTION_TASK     the name of the task at which to kill; never if it is empty
INTERRUPTION_TIME     which of the tasks of this name it is, from 1 on
INTERRUPTION_DELAY    how many seconds after its start
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: interruption
type: aggregate
short_description: Kills a run at a task
description: Writes a journal of the tasks, and kills ansible-playbook with all of its processes at one of them.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "interruption"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self.journal = open(os.environ["INTERRUPTION_JOURNAL"], "a", encoding="utf-8")  # noqa: SIM115 - for the run
        self.task, self.delay = os.environ.get("INTERRUPTION_TASK"), float(os.environ.get("INTERRUPTION_DELAY") or 0)
        self.left = int(os.environ.get("INTERRUPTION_TIME") or 1)  # so many tasks of this name until the kill
        self.number = 0

    def write(self, **event):
        self.journal.write(json.dumps(event) + "\n")
        self.journal.flush()

    def v2_playbook_on_task_start(self, task, is_conditional):
        self.number += 1
        self.write(task=self.number, name=task.get_name(), at=time.monotonic())
        if task.get_name() != self.task:
            return
        self.left -= 1
        if self.left == 0:
            if self.delay:
                threading.Timer(self.delay, kill_this_run).start()
            else:
                kill_this_run()

    def v2_playbook_on_handler_task_start(self, task):
        self.v2_playbook_on_task_start(task, is_conditional=False)

    def v2_runner_on_ok(self, result):
        if result.is_changed():
            self.write(task=self.number, changed=result._host.get_name())

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if not ignore_errors:
            self.write(task=self.number, fails=result._host.get_name(), why=str(result._result.get("msg", "")))

    def v2_runner_on_unreachable(self, result):
        self.v2_runner_on_failed(result)

    def v2_playbook_on_stats(self, stats):
        failed = sorted({*stats.failures, *stats.dark})
        self.write(ended=time.monotonic(), changes=sum(stats.changed.values()), failed=failed)


def kill_this_run():
    """Kill this process with all of its children, which have sessions of their own."""
    try:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)


def descendants(pid):
    """Return the processes that a process has started, and those that they have. Any of them may end meanwhile."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for each in Path(f"/proc/{pid}/task").iterdir():
            for child in (each / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found
