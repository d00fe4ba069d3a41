# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command line of a run names."""

from __future__ import annotations

import os
from typing import Collection

from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars

COLLECTION = "onprem.lb."
PLAYBOOKS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "playbooks")


def names_our_playbook() -> bool:
    """Tell whether one of our playbooks is run. One that imports ours may have tags and variables of its own."""
    return any(map(is_of_this_collection, context.CLIARGS.get("args") or ()))


def names_only_ours() -> bool:
    """Tell whether nothing but playbooks of ours is run: no play before them adds hosts, no import names groups."""
    return all(map(is_of_this_collection, context.CLIARGS.get("args") or [""]))


def is_of_this_collection(playbook: str) -> bool:
    """Tell whether a playbook is one of ours, by its full name or by its path."""
    folder = os.path.dirname(os.path.realpath(playbook))
    return playbook.startswith(COLLECTION) or folder == os.path.normpath(PLAYBOOKS)


def extra_variables() -> Collection[str]:
    """Return the names of the extra variables that were given to a playbook of this collection.

    Ansible has read them before the first task, with the passwords of their vaults, and returns them again.
    """
    names: Collection[str] = load_extra_vars(DataLoader()) if names_our_playbook() else ()
    return names
