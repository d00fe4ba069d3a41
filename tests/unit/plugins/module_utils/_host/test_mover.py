# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new file has its SELinux context before it takes its place, so that no program is ever denied it."""

from __future__ import annotations

import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.candidates import mover
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files

OWN = ["system_u", "object_r", "haproxy_etc_t", "s0"]
DEFAULT = ["system_u", "object_r", "etc_t", "s0"]


class Module:
    """What AnsibleModule does about SELinux; ``labelled`` has each file that got a context, and its text by then."""

    def __init__(self, enabled=True):
        self.enabled, self.labelled = enabled, []

    def selinux_enabled(self):
        return self.enabled

    def selinux_context(self, path):
        assert os.path.exists(path), "only a file that is there has a context"
        return OWN

    def selinux_default_context(self, _path):
        return DEFAULT

    def set_context_if_different(self, path, context, changed):
        with open(path, encoding="utf-8") as file:
            self.labelled.append((path, file.read(), context))
        return True


def moved(tmp_path, module, before):
    source, destination = tmp_path / ".haproxy.cfg.new", tmp_path / "haproxy.cfg"
    source.write_text("new\n")
    if before is not None:
        destination.write_text(before)
    mover(module)(str(source), str(destination))
    assert os.listdir(tmp_path) == ["haproxy.cfg"] and destination.read_text() == "new\n"
    return str(source)


@pytest.mark.parametrize("before, context", [("old\n", OWN), (None, DEFAULT)])
def test_a_file_gets_the_context_of_the_one_before_or_the_policys_while_it_is_beside_its_place(
    tmp_path, before, context
):
    module = Module()
    source = moved(tmp_path, module, before)
    assert module.labelled == [(source, "new\n", context)]


def test_without_selinux_no_context_is_set(tmp_path):
    module = Module(enabled=False)
    moved(tmp_path, module, "old\n")
    assert module.labelled == []


def test_every_file_that_is_replaced_gets_its_context(tmp_path):
    module = Module()
    wanted = [
        {"path": str(tmp_path / name), "content": f"{name}\n", "mode": "0644", "state": "present", "check": "none"}
        for name in ("one.conf", "two.conf")
    ]
    files.replace_all(files.changes(wanted), None, None, mover(module), dry=False)
    assert [(text, context) for _path, text, context in module.labelled] == [
        ("one.conf\n", DEFAULT),
        ("two.conf\n", DEFAULT),
    ]
