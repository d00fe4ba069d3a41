# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which words of a configuration file are no secret wherever they stand. Pure."""

from __future__ import annotations

import re

# The name of an option, a number or a time, an address, a file, a URL without a query.
WORD = re.compile(
    r"--?[a-zA-Z-]*|-?[\d.]{1,7}[a-zA-Z]{0,2}|!?\d+[.:/][\d.:/]+|[0-9a-f:]*::?[0-9a-f:]*(?:/\d+)?|haproxy|keepalived"
    r"|/(?:bin|dev|etc|home|lib|opt|run|sbin|srv|tmp|usr|var)(?:/[\w.+-]+)+|https?://[\w.:\[\]-]+(?:/[\w./-]*)?",
    re.ASCII,
)


def is_harmless(word: str) -> bool:
    return bool(WORD.fullmatch(word))
