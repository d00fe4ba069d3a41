# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has Ansible do in its own process what needs no host. In the quick scope only: the full one runs as users do.

Ansible starts a process for each task of each host, also where it includes tasks, computes a fact or skips. In a dry
run that takes a third of the controller's processor time. Modules have processes as ever, and run side by side.
What is the same at each task is found out once, and at each run once in a scenario. The garbage collection, which finds
little, is seldom.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from ansible.plugins import strategy
from ansible.plugins.callback import CallbackBase

# Ansible loads this file by its path, so what it imports of the tests comes after the path to them.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support import archives, prepared_ansible, remembered  # noqa: E402

DOCUMENTATION = """
name: in_place
type: aggregate
short_description: Has Ansible do in its own process what it does without a host
description: Spares the process that Ansible would start for it.
"""
HERE = {"assert", "debug", "fail", "include_role", "include_tasks", "refuse", "set_fact"}
ForkedWorker = strategy.WorkerProcess
SELDOM = 50_000  # new objects, before Python looks for garbage among them


def worker(**given):
    name = given["task"].action.rpartition(".")[2]
    return (prepared_ansible.Worker if name in HERE else ForkedWorker)(**given)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "in_place"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook):
        if os.environ.get("SCOPE", "quick") == "quick":
            strategy.WorkerProcess = worker
            remembered.remember()
            if scenario := os.environ.get("MOLECULE_EPHEMERAL_DIRECTORY"):
                archives.share(Path(scenario))
            gc.freeze()
            gc.set_threshold(SELDOM)
