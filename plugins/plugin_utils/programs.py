# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that modules write on hosts, packed by the controller from the sources of this collection."""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Dict

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


def with_program(action: ActionBase, name: str, known: Dict[str, Any]) -> Dict[str, Any]:
    """Run the module of an action with a program, and return its result.

    :param name: of the program; the module refuses one that there is not
    """
    arguments = {**action._task.args, **({PACKED: packed(name)} if name in BUILD else {})}
    done: Dict[str, Any] = action._execute_module(module_args=arguments, task_vars=known)
    return done
