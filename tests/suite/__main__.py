# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python3 tests/suite GROUP`, which make calls. It needs only the standard library, because it installs the tools.

Environment:
SCOPE  quick or full
STRICT 1: a skip is an error; the default if CI is set
RUNS   the scenarios to run, each SCENARIO:IMAGE; those of the scope by default
FRESH  1: the matrix also runs what has passed on this commit
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # this folder is run as a script, not as a package

import pythons  # noqa: E402
from support.scope import read_scope  # noqa: E402

from lab import machine  # noqa: E402
from suite import results, stages  # noqa: E402
from suite.passed import Passed, commit_of  # noqa: E402
from suite.runner import Runner  # noqa: E402

LOGS = ROOT / ".cache" / "suite"


def read_request(scope: str, group: str) -> stages.Request:
    """Return what the command line and the environment ask for, and what this machine allows."""
    facts = machine.observe()
    return stages.Request(
        full=scope == "full",
        privilege=facts.privilege,
        lab_refusal=machine.plan(facts, build_debian=True).refusal or "",
        programs=ROOT / ".venv" / "bin",
        python=sys.executable,
        logs=LOGS / group,
        has_oldest=pythons.runs_oldest(),
        runs=stages.read_runs(os.environ.get("RUNS", "")),
    )


def is_strict() -> bool:
    """Return whether a skip is an error: if STRICT is 1, and in CI unless STRICT is 0.

    :raises ValueError: STRICT is anything else
    """
    strict = os.environ.get("STRICT") or ("1" if os.environ.get("CI") else "0")
    if strict not in ("0", "1"):
        raise ValueError(f"STRICT is {strict!r}; it may be 0 or 1.")
    return strict == "1"


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in stages.GROUPS:
        print(f"usage: python3 tests/suite {'|'.join(stages.GROUPS)}", file=sys.stderr)
        return 64
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return run(sys.argv[1], read_scope(), is_strict())
        except BlockingIOError:
            print("Another test run is active in this checkout: wait for it, or end it.", file=sys.stderr)
        except ValueError as error:
            print(error, file=sys.stderr)
        except KeyboardInterrupt:
            print("Interrupted, so there is no result. `make down` removes the remaining hosts.", file=sys.stderr)
            print("`make matrix` goes on with the stages that have not passed.", file=sys.stderr)
            return 130
    return 64


def read_passed(group: str, request: stages.Request) -> Passed:
    """Return what has passed in the full scope. The matrix, which takes hours, goes on with the rest of it."""
    if os.environ.get("FRESH") == "1":
        shutil.rmtree(LOGS / "passed", ignore_errors=True)
    is_matrix = group == "test" and not request.runs
    return Passed(LOGS / "passed", commit_of(ROOT) if request.full else None, repeats=not is_matrix)


def run(group: str, scope: str, strict: bool) -> int:
    """Run the stages of a group and print the results; return the exit code."""
    os.environ["SCOPE"] = scope
    request = read_request(scope, group)
    # This Python may have put its own folder of programs first, as pyenv's does.
    os.environ["PATH"] = os.pathsep.join([str(request.programs), os.environ["PATH"]])
    print(f"{group}: SCOPE={scope} STRICT={int(strict)}", flush=True)
    passed = read_passed(group, request)
    if not passed.rows():
        shutil.rmtree(request.logs, ignore_errors=True)
    planned, at_once = stages.for_group(group, request), stages.AT_ONCE[request.full]
    rows = Runner(planned, request.logs, lambda line: print(line, flush=True), passed, at_once).run()
    print("\n".join(["", *results.table(rows), "", f"SCOPE={scope} STRICT={int(strict)}"]))
    print("\n".join(results.closing_lines(rows, strict)), flush=True)
    return results.exit_code(rows, strict)


if __name__ == "__main__":
    sys.exit(main())
