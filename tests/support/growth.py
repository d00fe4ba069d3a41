# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the work grows with the number of entries: Python's own instructions, the same on each machine, at each load."""

from __future__ import annotations

import sys

FEW = 30


def work(run):
    """Return how many instructions something takes, and what it returns."""
    count = 0

    def trace(frame, event, _arg):
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = run()
    finally:
        sys.settrace(before)
    return count, found


def check(plan_of):
    """Verify that a plan of more entries is as much work for each, and says as little of each.

    :param plan_of: takes a number of entries, and returns what makes the plan
    """
    plan_of(1)()  # what is imported and remembered the first time
    runs = [work(plan_of(times * FEW)) for times in (1, 2, 3)]
    one, two, three = (counted for counted, _plan in runs)
    few, more, most = (len(plan.faults) for _counted, plan in runs)
    assert three - two <= 1.2 * (two - one)
    assert most - more == more - few
