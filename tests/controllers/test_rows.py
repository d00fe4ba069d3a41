# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Under each setting a run changes the pair and the next one nothing, or it is refused before it changes anything.

In the full scope each has runs of its own. In the quick one, settings that do not exclude each other share them.
"""

from __future__ import annotations

import pytest
from support.scope import FULL

from .rows import ROWS, together

RUNS = ROWS if FULL else together(ROWS)
PORTS = {name: 8101 + at for at, name in enumerate(RUNS)}


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name, row in RUNS.items() if not row.refused])
def test_a_run_changes_the_pair_and_the_next_one_nothing(controller, name):
    first = controller.run(RUNS[name], PORTS[name])
    assert first.code == 0 and first.changed() == ["lb1", "lb2"], first.printed
    second = controller.run(RUNS[name], PORTS[name])
    assert second.code == 0 and second.recap and second.changed() == [], second.printed


@pytest.mark.parametrize("name", [name for name, row in RUNS.items() if row.refused])
def test_what_cannot_work_is_refused_in_a_sentence_before_anything_changes(controller, name):
    run = controller.run(RUNS[name], PORTS[name])
    assert run.code == 2 and run.recap and run.changed() == [], run.printed
    assert RUNS[name].refused in "".join(run.printed.splitlines()[-10:])
