# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where haproxy ends TLS with its own versions and ciphers, because its configuration names none."""

from __future__ import annotations

import re
from typing import List

from ..._shared import tls_words
from ..._shared.engines import CONFIGS, NATIVE, UNITS
from . import loaded_files

SECTION = re.compile(r"^(frontend|listen)\s+(\S+)")
ENDS = re.compile(r"^\s+bind\s.*\sssl(\s|$)")


def of_text(config: str) -> List[str]:
    """Return the frontends of a haproxy.cfg that end TLS so."""
    found: List[str] = []
    name, lines = "", config.splitlines()
    for line in [] if tls_words.are_for_all(lines) else lines:
        section = SECTION.match(line)
        name = section[2] if section else name
        if ENDS.match(line) and not tls_words.are_in(line.split()):
            found.append(name)
    return list(dict.fromkeys(found))


def read() -> List[str]:
    """Return those of the configuration that is in place."""
    return of_text(loaded_files.text(CONFIGS[UNITS[NATIVE].balancer]))
