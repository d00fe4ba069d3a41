# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a newer version of this collection wrote what runs on this host."""

from __future__ import annotations

import glob

from ..._shared import paths, versions

RECORDS = paths.members_record("*")  # of each layout


def refusal(variable: str) -> str:
    """Return why this version must not change this host; '' where it may.

    :param variable: the one by which a user accepts it
    """
    for path in sorted(glob.glob(RECORDS)):
        with open(path, encoding="utf-8", errors="replace") as file:
            found = versions.refusal(path, versions.written_by(file.read()), variable)
        if found:
            return found
    return ""
