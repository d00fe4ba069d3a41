# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of the checkout, in which files are broken and tests run; the checkout itself stays as it is."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, List, NamedTuple

from support.paths import ROOT

from .sample import Mutant

LIMIT_S = 900.0  # for the tests of one stage: a break may make one wait for ever
ENDS_S = 30.0  # what pytest has to remove what its tests have made
FOUND, SURVIVES, TOO_SLOW, FAILS_ANYWAY = "found", "survives", "too slow", "its tests fail without it"


class Verdict(NamedTuple):
    """What came of a break."""

    mutant: Mutant
    outcome: str


class Copy:
    """A copy of the files that git knows or would add, with an environment in which no test reaches the checkout."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder, self._breaks = folder, 0
        self._passing: List[List[str]] = []  # the tests that have passed without a break
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
        for name in filter(None, names):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name, follow_symlinks=False)
        cache = folder / ".cache"
        self._environment = {
            **os.environ,
            "ANSIBLE_HOME": str(cache / "ansible"),
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(cache / "collections"),
            "PYTHONPYCACHEPREFIX": str(cache / "compiled"),
        }

    def judge(self, mutant: Mutant, stages: List[List[str]]) -> Verdict:
        """Put a break in, run the tests until one fails, and take it out again."""
        for tests in stages:
            with self._broken(mutant):
                code = self._run(tests)
            if code is None:
                return Verdict(mutant, TOO_SLOW)
            if code:
                return Verdict(mutant, FOUND if self._pass(tests) else FAILS_ANYWAY)
        return Verdict(mutant, SURVIVES)

    def _pass(self, tests: List[str]) -> bool:
        """Whether tests pass without a break."""
        if tests not in self._passing and self._run(tests) == 0:
            self._passing.append(tests)
        return tests in self._passing

    @contextlib.contextmanager
    def _broken(self, mutant: Mutant) -> Iterator[None]:
        file = self.folder / mutant.path
        before, status = file.read_bytes(), file.stat()
        self._breaks += 1
        file.write_text(mutant.text)
        # Python knows a compiled file by the second and the size of its source: no two breaks have the same second.
        os.utime(file, (self._breaks, self._breaks))
        try:
            yield
        finally:
            file.write_bytes(before)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _run(self, tests: List[str]) -> int | None:
        """Return pytest's exit code; None if it took too long."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--exitfirst", "--quiet", *tests]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                return process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # its tests remove what they have made
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(ENDS_S)
                return None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def copies(count: int) -> Iterator[List[Copy]]:
    """Yield so many copies, and remove them at the end."""
    with tempfile.TemporaryDirectory(prefix="onprem-lb-mutants-") as folder:
        yield [Copy(Path(folder) / str(number)) for number in range(count)]
