# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drill_history
short_description: Read the records of earlier drills
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Reads each C(*.json) file of a folder on the controller.
  - It does not judge which of them are records.
options:
  _terms:
    description: The folder, seen from where the user is. One that does not exist has no files, and neither has V('').
    required: true
"""

EXAMPLES = r"""
- name: Read the records of earlier drills
  ansible.builtin.set_fact:
    kept: "{{ query('onprem.lb.drill_history', '/srv/drills') }}"
"""

RETURN = r"""
_raw:
  description: The C(path) of each file, its C(text), and what was C(wrong) when it could not be read.
  type: list
  elements: dict
"""

from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

LARGEST = 16 * 1024 * 1024  # bytes: a record has some thousands


class LookupModule(LookupBase):
    """The class that Ansible loads from this file."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        return [record for term in terms if term for record in read(Path(term).expanduser())]


def read(folder):
    """Return what each file in a folder has."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise AnsibleLookupError(
            f"drill_history is '{folder}': {error.strerror}. Name a folder that can be read."
        ) from error
    return [content(path) for path in paths]


def content(path):
    """Return the text of a file, or why it cannot be read."""
    found = {"path": str(path), "text": "", "wrong": ""}
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return {**found, "wrong": "it is not a file of a record's size"}
        return {**found, "text": path.read_text(encoding="utf-8")}
    except OSError as error:
        return {**found, "wrong": f"it cannot be read ({error.strerror})"}
    except ValueError:
        return {**found, "wrong": "it is not text"}
