"""Says which conditions and other keywords of tasks and playbooks the unit tests do not reach by playing them.

python3 tests/keywords.py [ARGUMENTS OF PYTEST]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support import keywords
from support.mirrors import mirrored, tests_of
from support.paths import ROOT


def main(arguments: list[str]) -> int:
    tests = sorted({test for path in mirrored() for test in tests_of(path)})
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ONPREM_LB_KEYWORDS": folder}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *(arguments or tests)], cwd=ROOT, env=environment, check=False
        )
        missing = keywords.unreached(keywords.read(Path(folder)))
    every = sum(1 for path in mirrored() for _keyword in keywords.keywords(path))
    print(*missing, f"{every - len(missing)} of {every} keywords are reached", sep="\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
