# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Under each setting a run changes the pair and the next one nothing, or it is refused before it changes anything."""

from __future__ import annotations

import pytest

from .rows import ROWS

PORTS = {name: 8101 + at for at, name in enumerate(ROWS)}


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.refused])
def test_a_run_changes_the_pair_and_the_next_one_nothing(controller, name):
    first = controller.run(ROWS[name], PORTS[name])
    assert first.code == 0 and first.changed() == ["lb1", "lb2"], first.printed
    second = controller.run(ROWS[name], PORTS[name])
    assert second.code == 0 and second.recap and second.changed() == [], second.printed


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.refused])
def test_what_cannot_work_is_refused_in_a_sentence_before_anything_changes(controller, name):
    run = controller.run(ROWS[name], PORTS[name])
    assert run.code == 2 and run.recap and run.changed() == [], run.printed
    assert ROWS[name].refused in "".join(run.printed.splitlines()[-10:])
