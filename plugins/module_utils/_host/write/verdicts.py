# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Has the program that will read a file say what it thinks of that."""

from __future__ import annotations

import re
from typing import Callable, Dict, List, NamedTuple, Optional

from ..read import keepalived_test, start_options
from ..read.reader import Run

# What haproxy says of lines that have no effect. A format of log lines has none where there is no log, as is usual.
IGNORED = re.compile(r"(?<!log format )\bignored\b")


class Verdict(NamedTuple):
    """What a program says about a file: why it refuses it, or None, and its warnings."""

    refusal: Optional[str]
    warnings: List[str] = []


def _haproxy(program: str, candidate: str, run: Run) -> Verdict:
    """haproxy accepts a file of which it ignores lines, with a warning: such a file does not do what it says."""
    code, out, err = run([program, "-c", *start_options.loaded(candidate, run)])
    lines = [line.strip() for line in (err + out).splitlines()]
    if code != 0:
        alerts = [line for line in lines if "[ALERT]" in line] or lines
        return Verdict(" ".join([*alerts, f"(exit code {code})"]))
    warnings = [line for line in lines if line.startswith(("[WARNING]", "[ALERT]"))]
    lost = [line for line in warnings if IGNORED.search(line)]
    return Verdict(" ".join(lost) or None, warnings)


def _keepalived_test(program: str, candidate: str, run: Run) -> Verdict:
    _code, out, err = run([program, "--version"])
    found = keepalived_test.version(out + err)
    code, out, err = run([program, "-t", "-f", candidate])
    said = err + out
    refusal = keepalived_test.refusal(found, code % 256, said, candidate)
    return Verdict(refusal, keepalived_test.complaints(said, candidate))


def _nft(program: str, candidate: str, run: Run) -> Verdict:
    """nft asks the kernel, too: it refuses what the kernel cannot do, and everything if it lacks the privilege."""
    code, out, err = run([program, "--check", "--file", candidate])
    lines = [line.strip() for line in (err + out).splitlines()]
    # Without the lines that quote the file.
    errors = [line for line in lines if "Error:" in line] or lines
    return Verdict(None if code == 0 else " ".join([*errors, f"(exit code {code})"]))


def _vtysh(program: str, candidate: str, run: Run) -> Verdict:
    """vtysh knows the commands of all daemons, whether they run or not. It says the number of a line, and the line."""
    code, out, err = run([program, "-C", "-f", candidate])
    lines = [line.strip() for line in (err + out).splitlines()]
    errors = [line for line in lines if line.startswith("line ")] or lines
    return Verdict(None if code == 0 else " ".join([*errors, f"(exit code {code})"]))


def _dnsmasq(program: str, candidate: str, run: Run) -> Verdict:
    code, out, err = run([program, "--test", f"--conf-file={candidate}"])
    lines = [line.strip() for line in (err + out).splitlines() if line.strip()]
    return Verdict(None if code == 0 else " ".join([*lines, f"(exit code {code})"]))


CHECKS: Dict[str, Callable[[str, str, Run], Verdict]] = {
    "haproxy": _haproxy,
    "keepalived": _keepalived_test,
    "nft": _nft,
    "dnsmasq": _dnsmasq,
    "vtysh": _vtysh,
}
