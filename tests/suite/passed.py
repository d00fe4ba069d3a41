# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages that have passed in full on this commit, so that a run of many hours goes on with the others."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Optional

from .results import Result, Row


class Passed:
    """One file for each stage that passed on a commit. Without a commit nothing is known, and nothing is kept.

    :ivar repeats: the run also runs what has passed
    """

    def __init__(self, folder: Path, commit: Optional[str], repeats: bool = False) -> None:
        self.folder, self.repeats = folder / commit if commit else None, repeats
        for other in folder.glob("*") if commit else ():
            if other != self.folder:  # of another commit
                shutil.rmtree(other)

    def rows(self) -> List[Row]:
        """Return the rows of those that need not run; one that cannot be read has not passed."""
        files = sorted(self.folder.glob("*.json")) if self.folder and not self.repeats else []
        return [row for row in map(_read, files) if row]

    def add(self, row: Row) -> None:
        """Keep the row of a stage that has passed whole."""
        if self.folder and row.result.passed and not row.result.failures and not row.result.skips:
            self.folder.mkdir(parents=True, exist_ok=True)
            kept: Dict[str, object] = {**row._asdict(), "result": row.result._asdict()}
            (self.folder / f"{row.name.replace(':', '-')}.json").write_text(json.dumps(kept))


def _read(file: Path) -> Optional[Row]:
    try:
        kept = json.loads(file.read_text())
        result = Result(kept["result"]["passed"], orders=kept["result"]["orders"])
        return Row(kept["name"], result, kept["seconds"], kept["cpu_s"])
    except (ValueError, KeyError, TypeError):
        return None  # the machine went down while it was written


def commit_of(checkout: Path) -> Optional[str]:
    """Return the commit that a checkout is at; None if a file differs from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ("git", "-C", checkout, *arguments), stdout=subprocess.PIPE, text=True, check=False
        ).stdout.strip()

    return (git("rev-parse", "HEAD") or None) if not git("status", "--porcelain") else None
