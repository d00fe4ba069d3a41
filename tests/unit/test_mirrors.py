# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each file of tasks and each playbook has a test that plays it."""

from __future__ import annotations

from support import mirrors
from support.paths import ROOT


def test_every_file_of_tasks_and_every_playbook_has_a_test():
    assert [path for path in mirrors.mirrored() if not mirrors.tests_of(path)] == []


def test_the_table_names_what_there_is():
    assert sorted(set(mirrors.table()) - set(mirrors.mirrored())) == []
    named = {test for tests in mirrors.table().values() for test in tests}
    assert sorted(test for test in named if not (ROOT / test).exists()) == []
