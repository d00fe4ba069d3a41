# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archives in which Ansible sends modules, built once for all runs of a scenario.

Ansible keeps them for one run. Each run that follows takes up to a second of a processor for each module, to search
its sources for what they import.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ansible import constants
from ansible.release import __version__

from support.paths import ROOT


def share(folder: Path) -> None:
    """Have this run use the archives that earlier ones have built of the same sources.

    :param folder: of the scenario
    """
    kept = folder / "archives" / version_of(ROOT / "plugins")
    kept.mkdir(parents=True, exist_ok=True)
    (Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache").symlink_to(kept)


def version_of(sources: Path) -> str:
    """Return what is another text once a source, or Ansible, is another one."""
    found = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(sources.rglob("*.py"))]
    return hashlib.sha256(f"{__version__} {found}".encode()).hexdigest()[:16]
