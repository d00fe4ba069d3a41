# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which words of a haproxy.cfg say what versions and ciphers of TLS clients may use. Pure."""

from __future__ import annotations

import re
from typing import Iterable

OF_BIND = re.compile(r"((ssl-(min|max)-ver|ciphers|ciphersuites|prefer-client-ciphers)$|(no|force)-(sslv3|tlsv1))")
OF_ALL = re.compile(r"\s*ssl-default-bind-(options|ciphers)")


def are_in(words: Iterable[str]) -> bool:
    """Return whether the words of a `bind` line say it."""
    return any(map(OF_BIND.match, words))


def are_for_all(lines: Iterable[str]) -> bool:
    """Return whether the section global says it."""
    return any(map(OF_ALL.match, lines))
