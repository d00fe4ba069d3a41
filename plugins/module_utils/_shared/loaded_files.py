# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file that a configuration names, and that its program reads with it. Pure."""

from __future__ import annotations

from typing import NamedTuple

# The kinds: a file or a folder, one with others of its name beside it, one with such names in its lines, several files.
PLAIN, CERTIFICATE, LIST, PATTERN = "plain", "certificate", "list", "pattern"
# Each of the three kinds of keys may have its own certificate.
KEYS = (".rsa", ".ecdsa", ".dsa")


class Named(NamedTuple):
    """One name."""

    path: str
    kind: str
    base: str = "/"  # of a list: the folder of the names in it that have none
