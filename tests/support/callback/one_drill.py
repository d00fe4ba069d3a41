# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps other scenarios idle while a drill measures, because they share the processors of this machine.

Ansible loads this as a callback. A playbook with ONE_DRILL in its environment holds the lock of `drill_lock` alone
until it ends, however it ends. The collection's own playbooks share it from begin to end, so that none of them is held
up on its way, and so does a playbook that imports them, while it plays them. Every other play, which runs those, waits
before each of its tasks. The scenarios' tests do the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ansible.plugins.callback import CallbackBase

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # Ansible loads this file by its path

from support import drill_lock  # noqa: E402

DOCUMENTATION = """
name: one_drill
type: aggregate
short_description: Keeps other scenarios idle while a drill measures
description: Waits for the drills of other scenarios on this machine.
"""
OWN_PLAYBOOKS = "playbooks"  # their folder
CONVERGE = "converge.yml"  # molecule's, which is one of them


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "one_drill"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self._lock = None
        self._is_run = False  # the whole playbook has the lock

    def v2_playbook_on_start(self, playbook):
        path = Path(playbook._file_name)
        if "ONE_DRILL" in os.environ:
            self._lock = drill_lock.take(drill_lock.ALONE)
        elif path.parent.name == OWN_PLAYBOOKS or path.name == CONVERGE:
            self._lock = drill_lock.take(drill_lock.SHARED)
        self._is_run = self._lock is not None

    def v2_playbook_on_play_start(self, play):
        if self._is_run:
            return
        is_own = OWN_PLAYBOOKS in Path(play.get_path()).parts  # with :LINE behind it
        if is_own and self._lock is None:
            self._lock = drill_lock.take(drill_lock.SHARED)
        elif self._lock is not None and not is_own:
            self._lock.close()
            self._lock = None

    def v2_playbook_on_task_start(self, task, is_conditional):
        if self._lock is None:
            drill_lock.wait_for_drills()

    def v2_playbook_on_handler_task_start(self, task):
        self.v2_playbook_on_task_start(task, is_conditional=False)
