# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Interprets keepalived's own configuration test, by version."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

# The meaning of its exit codes (keepalived's lib/bitops and main).
MEANINGS = {
    1: "it cannot run here",
    2: "it found no memory",
    3: "it is built without a part that this configuration needs",
    4: "the configuration cannot be used",
    5: "the configuration has an error or a warning",
    6: "a script of it could be changed by somebody who is not root",
}

# Printed at every start without a log socket, as in a container; not about the configuration.
NOISE = re.compile(r"failed to connect to syslog|^Terminated$")

# What an insecure script is, which it does not say.
INSECURE = re.compile(r" due to insecure$")
SECURE = (
    "only root may write to a script and to the folders of its path, and for keepalived 2.3 none of these folders may"
    " be a symbolic link: write /usr/bin, not /bin"
)

TERMINATED = 143  # 128 + SIGTERM


def version(output: str) -> Tuple[int, ...]:
    """Return the version that ``keepalived --version`` prints, () when it prints none."""
    found = re.search(r"Keepalived v(\d+)\.(\d+)\.(\d+)", output)
    return tuple(int(part) for part in found.groups()) if found else ()


def complaints(output: str) -> List[str]:
    """Return the lines of its output that are about the configuration."""
    lines = [line.strip() for line in output.splitlines()]
    return [line for line in lines if line and not NOISE.search(line)]


def refusal(installed: Tuple[int, ...], code: int, output: str) -> Optional[str]:
    """Return why ``keepalived -t`` refuses the file, or None if the file is good.

    Before 2.2.8 the test ends its own process group with SIGTERM if a script runs as another user than root: the code
    is 143 although nothing is wrong. Its complaints come before that, so they decide.
    """
    errors = complaints(output)
    if code == TERMINATED and installed < (2, 2, 8) and not errors:
        return None
    if code == 0:
        return None
    meaning = MEANINGS.get(code, f"it ended with code {code}")
    said = [*dict.fromkeys(errors), *([SECURE] if any(map(INSECURE.search, errors)) else [])]
    return f"{meaning}: {'; '.join(said)}" if said else meaning
