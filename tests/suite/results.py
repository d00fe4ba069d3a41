# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the results of a stage from the output of its program, and renders the table. Pure except for `read_junit`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Iterable, List, NamedTuple, Tuple
from xml.etree import ElementTree

# Molecule has other words for an action that did not run: no playbook, no tests, disabled.
MOLECULE_RAN = {"Successful": "passed", "Failed": "failed"}
MOLECULE_ACTION = re.compile(r"([\w-]+) (?:>|➜) (\w+): Executed: ([A-Z]\w*)(.*)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HEAD = ("stage", "passed", "failed", "skipped", "seconds", "of CPU", "what failed, and why something was skipped")
ANSIBLE_ERROR = re.compile(r"^\[ERROR\]: (?:Task failed: )?(?:Action failed: )?(.*)", re.MULTILINE)
MAX_CELL = 100  # characters of a reason in the table
MAX_LINE = 600  # characters of a failure below it
MAX_FAILURES = 20  # below the table


class Result(NamedTuple):
    """The results of one stage."""

    passed: int = 0
    failures: Tuple[str, ...] = ()  # a name for each, with the first line of its reason
    skips: Tuple[str, ...] = ()  # a reason for each
    orders: int = 0  # that tests have played which play many

    def __add__(self, other: Result) -> Result:  # type: ignore[override]
        return Result(*(mine + theirs for mine, theirs in zip(self, other)))  # type: ignore[arg-type]

    @property
    def ran(self) -> bool:
        return bool(self.passed or self.failures)


class Row(NamedTuple):
    """A line of the table: one stage."""

    name: str
    result: Result
    seconds: float
    cpu_s: float = 0  # seconds of processors in its programs, but not on the lab's hosts


def read_junit(files: Iterable[Path]) -> Result:
    """Sum the results in JUnit files."""
    total = Result()
    for file in files:
        try:
            cases = ElementTree.parse(file).iter("testcase")
            total += sum((_judge_case(case) for case in cases), Result())
        except (ElementTree.ParseError, OSError) as error:
            total += Result(failures=(f"{file.name} cannot be read: {error}",))
    return total


def _judge_case(case: ElementTree.Element) -> Result:
    name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return Result(failures=(f"{name}: {_first_line(found.get('message') or found.text or kind)}",))
    skipped = case.find("skipped")
    if skipped is not None:
        return Result(skips=(_first_line(skipped.get("message") or "no reason given"),))
    played = case.find("properties/property[@name='orders']")
    return Result(passed=1, orders=0 if played is None else int(played.get("value", "")))


def read_molecule(log: str) -> Result:
    """Count the actions of a scenario by the states in molecule's log; an action that did not run counts as skipped.

    The reason of a failure is in Ansible's last two errors, because the cleanup may fail as well.
    """
    total, plain = Result(), COLOUR.sub("", log)
    reason = "; then ".join(ANSIBLE_ERROR.findall(plain)[-2:]) or "see the log"
    for scenario, action, state, note in MOLECULE_ACTION.findall(plain):
        outcome = MOLECULE_RAN.get(state)
        if outcome == "passed":
            total += Result(passed=1)
        elif outcome == "failed":
            total += Result(failures=(f"{scenario} > {action}: {reason}",))
        else:
            total += Result(skips=(_first_line(f"{scenario} > {action}: {state}{note}"),))
    return total if total != Result() else Result(failures=("molecule reported no action",))


def with_exit_code(result: Result, code: int) -> Result:
    """Return a result with at least one failure if the exit code is not 0, or if no test ran."""
    if code and not result.failures:
        return result + Result(failures=(f"exit code {code}",))
    if not result.ran and not result.skips:
        return result + Result(failures=("no test ran",))
    return result


def table(rows: List[Row]) -> List[str]:
    """Return the rows as aligned lines in Markdown."""
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(HEAD))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _cells(row: Row) -> Tuple[str, ...]:
    result = row.result
    counts = (str(result.passed), str(len(result.failures)), str(len(result.skips)))
    return (row.name, *counts, f"{row.seconds:.0f}", f"{row.cpu_s:.0f}", "; ".join(_reasons(result)))


def _reasons(result: Result) -> List[str]:
    """Return the first failure, each reason for skips with its count, and how many orders were played."""
    more = len(result.failures) - 1
    failures = [*result.failures[:1], *([f"{more} more"] if more > 0 else [])]
    skips = [f"{count} x {reason}" if count > 1 else reason for reason, count in Counter(result.skips).most_common()]
    played = [f"{result.orders:,} orders played"] if result.orders else []
    return [text[:MAX_CELL] for text in (*failures, *skips, *played)]


def closing_lines(rows: List[Row], strict: bool) -> List[str]:
    """Return the verdict: the failures, INCOMPLETE if something was skipped, and the counts in the last line.

    :param strict: a skip is an error
    """
    total = sum((row.result for row in rows), Result())
    skipping = [row.name for row in rows if row.result.skips]
    failures = [f"FAILED {row.name}: {text}"[:MAX_LINE] for row in rows for text in row.result.failures]
    lines = failures[:MAX_FAILURES]
    if skipping:
        error = ", which is an error with STRICT=1" if strict else ""
        lines.append(f"INCOMPLETE: something was skipped in {', '.join(skipping)}{error}.")
    return [*lines, f"{total.passed} passed, {len(total.failures)} failed, {len(total.skips)} skipped"]


def exit_code(rows: List[Row], strict: bool) -> int:
    """Return 0 if everything ran and passed, 1 for a failure, 2 if something was skipped and STRICT is not set."""
    if any(row.result.failures for row in rows):
        return 1
    if any(row.result.skips for row in rows):
        return 1 if strict else 2
    return 0


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].strip() if lines else ""
