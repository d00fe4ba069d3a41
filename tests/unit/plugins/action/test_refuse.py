# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What refuses a run: it fails with all faults, and does nothing without one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleError
from ansible_collections.onprem.lb.plugins.action.refuse import ActionModule


def refuse(**arguments):
    task = SimpleNamespace(args=arguments, async_val=0, action="onprem.lb.refuse", check_mode=False, diff=False)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    return ActionModule(task, connection, SimpleNamespace(), None, None, None).run()


def test_each_fault_is_said_and_the_task_fails():
    found = refuse(faults=["pair_vips is empty: name the VIPs.", "lb1 is named twice: name it once."])
    assert (found["failed"], found["msg"]) == (
        True,
        ["pair_vips is empty: name the VIPs.", "lb1 is named twice: name it once."],
    )


def test_without_a_fault_nothing_is_changed():
    found = refuse(faults=[])
    assert not found.get("failed") and found["changed"] is False


def test_without_a_fault_the_lines_are_shown_as_debug_shows_its_message_and_with_one_they_are_not():
    found = refuse(faults=[], lines=["lb1 holds it.", "then lb2"])
    assert (found["msg"], found["_ansible_verbose_always"]) == (["lb1 holds it.", "then lb2"], True)
    assert not found.get("failed") and found["changed"] is False
    assert refuse(faults=["no VIPs"], lines=["lb1 holds it."])["msg"] == ["no VIPs"]
    assert "msg" not in refuse(faults=[], lines=[])


@pytest.mark.parametrize("arguments", [{}, {"fault": []}, {"faults": {"a": 1}}])
def test_a_task_that_gives_something_else_is_an_error_and_does_not_pass(arguments):
    with pytest.raises(AnsibleError):
        refuse(**arguments)
