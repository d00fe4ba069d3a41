# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task names are read in a terminal at night: eight words at most."""

from __future__ import annotations

import re

from support.paths import PLAYBOOKS, ROLES

NAME = re.compile(r"^\s*- name: (?P<name>.*)$", re.MULTILINE)
WORDS = 8  # besides the stage before the bar


def names():
    """Return ``{name: file}`` of every task and play. A template counts as one word."""
    return {
        re.sub(r"\{\{.*?\}\}", "X", found["name"].strip("\"'")): str(file)
        for folder in (ROLES, PLAYBOOKS)
        for file in sorted(folder.rglob("*.yml"))
        for found in NAME.finditer(file.read_text())
    }


def test_a_task_has_a_short_name():
    assert {name: file for name, file in names().items() if len(name.split("|")[-1].split()) > WORDS} == {}
