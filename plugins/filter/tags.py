# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Judges the tags of a run: see tag_faults.yml."""

from __future__ import annotations

import os

from ansible import context
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import tags

COLLECTION = "onprem.lb."
PLAYBOOKS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "playbooks")


def tag_faults(run, skip, known):
    """Return the faults where the command line names a playbook of this collection.

    One that imports it may have other tags.
    """
    named = context.CLIARGS.get("args") or ()
    return tags.tag_faults(run, skip, known) if any(map(is_of_this_collection, named)) else []


def is_of_this_collection(playbook):
    """Tell whether a playbook is one of ours, by its full name or by its path."""
    folder = os.path.dirname(os.path.realpath(playbook))
    return playbook.startswith(COLLECTION) or folder == os.path.normpath(PLAYBOOKS)


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"tag_faults": tag_faults}
