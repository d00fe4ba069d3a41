# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be broken in a file of Python."""

from __future__ import annotations

import pytest
from mutants.python_breaks import Break, DropStatement, breaks_of, broken

CODE = '''\
"""The lines of the text are left alone: 1 < 2."""
import os


def close(file, at):
    """Not this one."""
    if at < 5 and not file:
        raise ValueError(at)
    os.fsync(file)
    for each in file:
        if each is None:
            continue
    return at + 1
'''


def results(kind):
    """Return the changed lines of all breaks of a kind."""
    before = CODE.splitlines()
    changed = (broken(CODE, one).splitlines() for one in breaks_of(CODE)[kind])
    return [[new.strip() for old, new in zip(before, after) if old != new] for after in changed]


@pytest.mark.parametrize(
    "kind, lines",
    [
        ("condition", [["if not at < 5 and not file:"], ["if not each is None:"], ["if at < 5 and  file:"]]),
        ("and, or", [["if at < 5 or not file:"]]),
        ("comparison", [["if each is not None:"], ["if at <= 5 and not file:"], ["if at >= 5 and not file:"]]),
        ("arithmetic", [["return at - 1"]]),
        ("statement", [["pass"], ["pass"], ["pass"]]),
        ("flow", [["for each in []:"], ["break"]]),
    ],
)
def test_each_kind_breaks_one_place_at_a_time(kind, lines):
    assert results(kind) == lines


def test_a_number_becomes_one_more_or_one_less():
    assert sorted(line.strip() for (line,) in results("constant")) == [
        *("if at < 4 and not file:", "if at < 6 and not file:", "return at + 0", "return at + 2")
    ]


def test_a_call_a_return_and_a_raise_are_left_out():
    assert [one.line for one in breaks_of(CODE)["statement"]] == [8, 9, 13]
    assert breaks_of("def none():\n    return None\n") == {}, "which says what the end says anyway"
    for example in DropStatement.examples():
        assert broken(example.pre_mutation_code, Break(DropStatement(), 0, 1)) == example.post_mutation_code


def test_what_does_not_compile_is_no_break():
    code = "x = -1\n(-x) = 1\n"
    assert broken(code, Break(DropStatement(), 0, 1)) == code
