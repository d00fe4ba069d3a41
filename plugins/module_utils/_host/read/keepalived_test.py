# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Interprets keepalived's own configuration test, by version."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Tuple

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

PLACE = re.compile(r"\((?P<file>[^()]+): Line \d+\)")
NOT_REPEATED = "it does not take this line, which is not repeated, because the file is another one"

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


def complaints(output: str, path: str) -> List[str]:
    """Return the lines of its output that are about the configuration.

    It quotes the lines of the files that the configuration includes, too: of each of these the first place is named.

    :param path: the configuration's own
    """
    lines = [line.strip() for line in output.splitlines()]
    found: Dict[str, str] = {}
    for line in lines:
        place = PLACE.match(line)
        if place and place["file"] != path:
            found.setdefault(place["file"], f"{place.group()} {NOT_REPEATED}")
        elif line and not NOISE.search(line):
            found.setdefault(f"{len(found)}", line)
    return list(found.values())


def refusal(installed: Tuple[int, ...], code: int, output: str, path: str) -> Optional[str]:
    """Return why ``keepalived -t`` refuses the file, or None if the file is good.

    Before 2.2.8 the test ends its own process group with SIGTERM if a script runs as another user than root: the code
    is 143 although nothing is wrong. Its complaints come before that, so they decide.
    """
    errors = complaints(output, path)
    if code == TERMINATED and installed < (2, 2, 8) and not errors:
        return None
    if code == 0:
        return None
    meaning = MEANINGS.get(code, f"it ended with code {code}")
    said = [*dict.fromkeys(errors), *([SECURE] if any(map(INSECURE.search, errors)) else [])]
    return f"{meaning}: {'; '.join(said)}" if said else meaning
