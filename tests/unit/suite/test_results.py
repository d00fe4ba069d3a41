# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run never counts as passed if something failed or did not run."""

from __future__ import annotations

import pytest
from suite.results import Result, Row, closing_lines, exit_code, read_junit, read_molecule, table, with_exit_code

GOOD = Row("unit", Result(passed=7), 12.4)
BAD = Row("netns", Result(5, ("test_vip::test_a: gone",)), 60.0)
SKIPPED = Row("default:debian12", Result(0, (), ("no podman",)), 0.0)

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="unit.test_vip" name="test_good"/>
<testcase classname="unit.test_vip" name="test_bad"><failure message="assert 1 == 2&#10;more">trace</failure></testcase>
<testcase classname="unit.test_vip" name="test_broken"><error message="fixture fell"/></testcase>
<testcase classname="unit.test_vip" name="test_left_out"><skipped message="needs root"/></testcase>
<testcase classname="unit.test_vip" name="test_expected"><skipped type="pytest.xfail" message="some day"/></testcase>
</testsuite></testsuites>"""

MOLECULE = """\
INFO     default > converge: Executed: Successful
[ERROR]: Task failed: Action failed: the VIP was gone
\x1b[31mERROR\x1b[0m    \x1b[mdefault\x1b[0m > idempotence: Executed: Failed
WARNING  default > side_effect: Executed: Missing playbook (Remove from test_sequence to suppress)
INFO     default ➜ verify: Executed: Successful
INFO     something else: Successful
"""


def test_junit_files_distinguish_failures_errors_and_skips(tmp_path):
    file = tmp_path / "junit.xml"
    file.write_text(JUNIT)
    assert read_junit([file]) == Result(
        1, ("test_vip::test_bad: assert 1 == 2", "test_vip::test_broken: fixture fell"), ("needs root", "some day")
    )


def test_a_test_that_plays_many_orders_says_how_many(tmp_path):
    file = tmp_path / "junit.xml"
    played = '<testcase name="test_all"><properties><property name="orders" value="{}"/></properties></testcase>'
    file.write_text(f"<testsuites>{played.format(1200)}{played.format(34)}<testcase name='test'/></testsuites>")
    found = read_junit([file])
    assert found == Result(3, orders=1234)
    assert "| 1,234 orders played " in table([Row("unit", found, 1.0)])[-1]


def test_a_truncated_junit_file_is_a_failure(tmp_path):
    file = tmp_path / "junit.xml"
    file.write_text(JUNIT[:200])
    assert [failure.split(":")[0] for failure in read_junit([file]).failures] == ["junit.xml cannot be read"]


def test_an_action_that_molecule_did_not_run_counts_as_skipped():
    assert read_molecule(MOLECULE) == Result(
        2,
        ("default > idempotence: the VIP was gone",),
        ("default > side_effect: Missing playbook (Remove from test_sequence to suppress)",),
    )


def test_a_molecule_log_without_actions_is_a_failure():
    assert read_molecule("something else").failures == ("molecule reported no action",)


@pytest.mark.parametrize(
    ("result", "code", "failures"),
    [
        (Result(passed=3), 0, ()),
        (Result(passed=3), 1, ("exit code 1",)),
        (Result(), 0, ("no test ran",)),
        (Result(), 5, ("exit code 5",)),
        (Result(failures=("a",)), 1, ("a",)),
        (Result(skips=("no podman",)), 0, ()),
    ],
)
def test_a_stage_that_failed_or_ran_nothing_has_a_failure(result, code, failures):
    assert with_exit_code(result, code).failures == failures


@pytest.mark.parametrize(
    ("rows", "strict", "code"),
    [
        ([GOOD], False, 0),
        ([GOOD], True, 0),
        ([GOOD, BAD], False, 1),
        ([GOOD, SKIPPED], False, 2),
        ([GOOD, SKIPPED], True, 1),
        ([BAD, SKIPPED], False, 1),
    ],
)
def test_only_a_complete_run_without_a_failure_ends_with_0(rows, strict, code):
    assert exit_code(rows, strict) == code


def test_the_last_line_has_the_counts_and_the_lines_before_it_have_failures_and_skips():
    assert closing_lines([GOOD, BAD], strict=True) == [
        "FAILED netns: test_vip::test_a: gone",
        "12 passed, 1 failed, 0 skipped",
    ]
    assert closing_lines([GOOD, SKIPPED], strict=True) == [
        "INCOMPLETE: something was skipped in default:debian12, which is an error with STRICT=1.",
        "7 passed, 0 failed, 1 skipped",
    ]


def test_the_table_has_a_row_for_each_stage_with_the_reasons():
    skips = Row("unit", Result(1, (), ("needs root", "no openssl", "needs root")), 1.0, 1.9)
    lines = table([BAD, skips])
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert cells == [
        ["netns", "5", "1", "0", "60", "0", "test_vip::test_a: gone"],
        ["unit", "1", "0", "3", "1", "2", "2 x needs root; no openssl"],
    ]
    assert len({len(line) for line in lines}) == 1
