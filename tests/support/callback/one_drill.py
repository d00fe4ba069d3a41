# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing else is at work on the lab while a drill measures: two scenarios share the processors of this machine.

Ansible loads this as a callback. A playbook that has ONE_DRILL in its environment keeps the lock until it ends, however
that is. Any other lets a drill end before each of its tasks. The scenarios' tests do the same.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: one_drill
type: aggregate
short_description: Lets nothing else begin while a drill measures
description: Takes turns with the drills of other scenarios on this machine.
"""
LOCK = Path(__file__).resolve().parents[3] / ".cache" / "lab" / "drill.lock"


def let_drills_end(path: Path = LOCK) -> None:
    """Return as soon as no drill is at work."""
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
            self._kept = open(LOCK, "ab")  # noqa: SIM115 - closed when Ansible ends, and not before
            fcntl.flock(self._kept, fcntl.LOCK_EX)

    def v2_playbook_on_task_start(self, task, is_conditional):
        if "ONE_DRILL" not in os.environ:
            let_drills_end()

    v2_playbook_on_handler_task_start = v2_playbook_on_task_start
