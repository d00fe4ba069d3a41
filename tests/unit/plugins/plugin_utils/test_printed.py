# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of what a program has printed, its beginning is said too: of a failure's cause nobody reads the tail alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.plugin_utils.printed import cause_in

PYENV = """pyenv: python3.12: command not found

The `python3.12' command exists in these Python versions:
  3.12.1

Note: See 'pyenv help global' for tips on allowing multiple
      Python versions to be found at the same time.
"""


@pytest.mark.parametrize("count", range(1, 12))
def test_the_first_line_and_the_last_ones_are_said_and_what_is_left_out_shows(count):
    printed = [f"line {number}" for number in range(count)]
    said = cause_in("\n\n".join(printed) + "\n")
    assert said[0] == printed[0] and said[-1] == printed[-1] and len(said) <= 5
    assert ("..." in said) == (said != printed)


def test_the_advice_of_a_shell_does_not_hide_what_it_lacks():
    assert cause_in(PYENV)[0] == "pyenv: python3.12: command not found"


@pytest.mark.parametrize(
    "program, said",
    [
        ("raise KeyError('x')", ["KeyError: 'x'"]),
        ("raise ValueError('one\\n  two\\nthree')", ["ValueError: one", "two", "three"]),
        ("try: 1 / 0\nexcept ZeroDivisionError: raise KeyError('x')", ["KeyError: 'x'"]),
    ],
)
def test_of_a_traceback_the_exception_is_said(program, said):
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=False)
    assert cause_in(f"a warning\n{done.stderr}") == said


def test_a_traceback_that_is_cut_off_is_said_as_it_is():
    assert cause_in('Traceback (most recent call last):\n  File "x"') == [
        "Traceback (most recent call last):",
        'File "x"',
    ]
    assert cause_in(" \n") == []
