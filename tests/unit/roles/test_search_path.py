# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run finds root's programs whatever PATH su or sudo leave it: Debian's su has no folder sbin in it."""

from __future__ import annotations

import os
import re

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._host import module
from support.paths import PLAYBOOKS, ROLES

# Commands that a plan has, with their path.
PLANNED = ("{{ item", "__steps.frr.", "__announce_as_before", "__layout_me.leaves.", "__migrate_")
IN_BIN = ("apt-get", "find", "nmcli", "stat", "systemctl")  # /usr/bin is in every PATH
FILES = [*ROLES.glob("*/tasks/**/*.yml"), *ROLES.glob("*/handlers/*.yml"), *PLAYBOOKS.rglob("*.yml")]


def tasks(found):
    """Yield all tasks of a file, those of plays and blocks included."""
    for each in found or []:
        if isinstance(each, dict):
            yield each
            for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
                yield from tasks(each.get(key))


EVERY = [task for file in FILES for task in tasks(yaml.safe_load(file.read_text()))]


def program(task):
    """Return the program of a task that runs one."""
    given = task["ansible.builtin.command"]
    command = given if isinstance(given, str) else given.get("cmd") or given["argv"]
    return re.findall(r"[\w./-]+|\{\{ item", command if isinstance(command, str) else str(command[:80]))[0]


def test_the_commands_of_tasks_are_named_by_their_path_unless_every_path_has_them():
    named = {program(task) for task in EVERY if "ansible.builtin.command" in task}
    assert {name for name in named if not name.startswith(("/", *IN_BIN, *PLANNED))} == set()
    assert {"/sbin/sysctl", "/usr/sbin/nft"} < named


def test_dpkg_finds_its_programs():
    found = [
        task.get("environment", {}).get("PATH", "")
        for task in EVERY
        if {"ansible.builtin.apt", "ansible.builtin.package"} & {*task}
    ]
    assert len(found) >= 4 and all({"/usr/sbin", "/sbin", "/usr/bin"} <= {*each.split(":")} for each in found)


@pytest.mark.parametrize(
    "given, path",
    [
        ("/usr/bin:/bin", "/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
        ("/usr/sbin:/own", "/usr/sbin:/own:/usr/local/sbin:/sbin"),
        ("", "/usr/local/sbin:/usr/sbin:/sbin"),
    ],
)
def test_a_module_looks_for_programs_in_the_users_path_and_then_in_roots_folders(given, path, monkeypatch):
    assert module.search_path(given) == path
    monkeypatch.setenv("PATH", given)
    monkeypatch.setattr(module.AnsibleModule, "__init__", lambda self, **_given: setattr(self, "no_log_values", set()))
    module.Module({})
    assert os.environ["PATH"] == path
