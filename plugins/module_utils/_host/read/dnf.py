# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What dnf says of packages that it is to install. It is asked, and installs nothing. Pure."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple

# It waits for no other dnf, and for a repository as long as `reader` waits for a package source.
ASK = ["--assumeno", "--setopt=exit_on_lock=True", "--setopt=timeout=4", "--setopt=retries=1", "install"]
FILTERED = re.compile(r"^All matches were filtered out by \w+ filtering for argument: (\S+)$", re.MULTILINE)
ERROR = re.compile(r"^Error:\s+(\S.*)$", re.MULTILINE)


class Answer(NamedTuple):
    """Why it would not install them."""

    filtered: Dict[str, str] = {}  # for each package that its settings withhold, a sentence with the mend
    unobtainable: str = ""  # what else it says


def read(output: str) -> Answer:
    """Read what `dnf install` prints of packages that are not there, in the locale C."""
    names: List[str] = FILTERED.findall(output)
    if names:
        return Answer({name: _filtered(name) for name in names})
    error = ERROR.search(output)
    return Answer({}, f"dnf says: {error[1].rstrip('.:')}") if error else Answer()


def _filtered(name: str) -> str:
    return (
        f"{name} is not installed, and dnf may not install it: take it out of excludepkgs in /etc/dnf/dnf.conf and "
        "/etc/yum.repos.d, or out of `dnf versionlock list`."
    )
