# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Says in the last lines of a failed run what has failed, however much the run prints after that."""

from __future__ import annotations

DOCUMENTATION = """
name: failures
type: notification
short_description: Say in the last lines of a run what has failed
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - After the recap of a failed run, prints each task that has failed, its hosts and its message on standard error, in
    at most ten lines. Otherwise they are far up, above the tasks that release the members.
  - The playbooks of this collection load it by themselves. A play of your own with one of the layouts' roles gets it
    with C(callbacks_enabled = onprem.lb.failures) in C(ansible.cfg).
"""

import sys
from typing import Any, ClassVar, Dict, List, Set, Tuple

from ansible import constants
from ansible.plugins.callback import CallbackBase
from ansible_collections.onprem.lb.plugins.plugin_utils.printed import cause_in

LINES = 10
HIDDEN = "Its message is hidden, because it may have a secret."


def words_of(result: Dict[str, Any]) -> List[str]:
    """Return the lines that say why a task has failed: its own, or those of the items of its loop."""
    items = [item for item in result.get("results") or [] if isinstance(item, dict)]
    failed = [item for item in items if item.get("failed") or item.get("unreachable")]
    if failed:
        return list(dict.fromkeys(line for item in failed for line in words_of(item)))
    if "censored" in result:
        return [HIDDEN]
    message = result.get("msg") or result.get("reason") or ""
    texts = [str(text) for text in (message if isinstance(message, list) else [message])]
    streams = [str(result.get(name) or "") for name in ("module_stderr", "stderr", "module_stdout", "stdout")]
    lines = [line.strip() for text in texts for line in text.split("\n")]
    # Of a program's own words, those of its errors say it, if it has any.
    printed: List[str] = next((cause_in(text) for text in streams if text.strip()), [])
    return [line for line in lines + [line for line in printed if line not in lines] if line]


def is_rescued(task: Any) -> bool:
    """Return whether a block around a task has a rescue, which runs when the task fails.

    A block rescues neither what fails in its own rescue nor what fails in its `always`.
    """
    inside, parent = {task._uuid}, task._parent
    while parent:
        if getattr(parent, "rescue", []) and inside & {each._uuid for each in parent.block}:
            return True
        inside.add(parent._uuid)  # a file that is imported stands in a block with its tasks, and not itself
        parent = parent._parent
    return False


class CallbackModule(CallbackBase):
    """Keeps what fails until the run has ended."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "onprem.lb.failures"
    # The hosts, by what became of them, the task and its words. All instances share it: a user may have named one.
    seen: ClassVar[Dict[Tuple[str, str, Tuple[str, ...]], Set[str]]] = {}

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors and not is_rescued(result._task):
            self._keep("failed", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if not result._task_fields.get("ignore_unreachable"):
            self._keep("unreachable", result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        lines: List[str] = []
        for (end, task, words), hosts in self.seen.items():
            # Not one whose failures were all rescued or ignored.
            ended = sorted(host for host in hosts if host in stats.failures or host in stats.dark)
            lines += [f'{", ".join(ended)}: {end} at "{task}":', *(f"  {line}" for line in words)] if ended else []
        self.seen.clear()
        if len(lines) > LINES:
            lines[LINES - 1 :] = [f"  and {len(lines) - LINES + 1} more lines, above the recap."]
        if lines:
            sys.stdout.flush()  # it has the recap, which comes first
            self._display.display("\n".join(lines), color=constants.COLOR_ERROR, stderr=True)

    def _keep(self, end: str, result: Any) -> None:
        hosts = self.seen.setdefault((end, result.task_name, tuple(words_of(result._result))), set())
        hosts.add(result._host.get_name())
