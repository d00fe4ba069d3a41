# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCOPE decides how many cases the tests have: `quick` for `make test`, `full` for `make matrix`."""

from __future__ import annotations

import os

SCOPES = ("quick", "full")


def read_scope() -> str:
    """Return the scope in the environment; by default quick.

    :raises SystemExit: SCOPE has another value
    """
    scope = os.environ.get("SCOPE") or SCOPES[0]
    if scope not in SCOPES:
        raise SystemExit(f"SCOPE is {scope!r}; it may be {' or '.join(SCOPES)}.")
    return scope


SCOPE = read_scope()
FULL = SCOPE == "full"
