# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that modules write on hosts, packed by the controller from the sources of this collection."""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Dict, Optional

from ansible.plugins.action import ActionBase
from ansible_collections.onprem.lb.plugins.module_utils import _agent
from ansible_collections.onprem.lb.plugins.module_utils._host import interpreter
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive, keepalived_hook
from ansible_collections.onprem.lb.plugins.module_utils._host.module import PACKED
from ansible_collections.onprem.lb.plugins.module_utils._host.write import programs

FOLDER = os.path.dirname(os.path.abspath(_agent.__file__))
BUILD: Dict[str, Callable[[], bytes]] = {
    "agent": lambda: archive.build(FOLDER),
    "keepalived_hook": lambda: keepalived_hook.build(archive.sources(FOLDER)),
}


@functools.lru_cache(maxsize=None)
def packed(name: str) -> str:
    """Return a program as its module takes it."""
    return programs.handed(BUILD[name]())


@functools.lru_cache(maxsize=None)
def hook_checksum() -> str:
    """Return the checksum of this release's hook of keepalived."""
    return interpreter.checksum(BUILD["keepalived_hook"]())


class WithProgram(ActionBase):
    """Runs the module of the same name with a program."""

    _supports_async = True

    def program(self) -> str:
        """Return which one; the module refuses one that there is not."""
        raise NotImplementedError

    def run(self, tmp: Any = None, task_vars: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        result: Dict[str, Any] = super().run(tmp, task_vars)
        name = self.program()
        arguments = {**self._task.args, **({PACKED: packed(name)} if name in BUILD else {})}
        in_background = bool(self._task.async_val)
        done = self._execute_module(module_args=arguments, task_vars=task_vars or {}, wrap_async=in_background)
        return {**result, **done}
