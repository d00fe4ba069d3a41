# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps other scenarios idle while a drill measures, because they share the processors of this machine.

Ansible loads this as a callback. A playbook with ONE_DRILL in its environment holds a lock until it ends, however it
ends. Every other playbook waits for that lock before each of its tasks. The scenarios' tests do the same.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: one_drill
type: aggregate
short_description: Keeps other scenarios idle while a drill measures
description: Waits before each task for the drills of other scenarios on this machine.
"""
LOCK = Path(__file__).resolve().parents[3] / ".cache" / "lab" / "drill.lock"


def wait_for_drills(path: Path = LOCK) -> None:
    """Return as soon as no drill runs."""
    with open(path, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "one_drill"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook):
        LOCK.parent.mkdir(parents=True, exist_ok=True)
        if "ONE_DRILL" in os.environ:
            self._lock = open(LOCK, "ab")  # noqa: SIM115 - closed when Ansible ends, and not before
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def v2_playbook_on_task_start(self, task, is_conditional):
        if "ONE_DRILL" not in os.environ:
            wait_for_drills()

    def v2_playbook_on_handler_task_start(self, task):
        self.v2_playbook_on_task_start(task, is_conditional=False)
