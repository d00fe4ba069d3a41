# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Finds and masks the passwords of configuration files. Pure."""

from __future__ import annotations

import re
import shlex
from typing import List

MASK = "********"
# A word of haproxy.cfg or keepalived.conf, parts of which may be in quotes.
WORD = r"""(?:'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|\\.|[^\s'"\\]|['"])+"""
# A header that a raw line of haproxy.cfg sends with a password or a token.
HEADER = r"(?:hdr|(?:set|add)-header)[ \t]+(?i:authorization)"
# What precedes a password there, and in the agent's JSON.
PASSWORD = re.compile(rf"\b(auth_pass|insecure-password|password|stats[ \t]+auth|{HEADER})([ \t]+)({WORD})")
JSON_PASSWORD = re.compile(r'("auth_pass":\s*)("(?:[^"\\]|\\.)+")')


def masked(text: str) -> str:
    """Return a text without its passwords, even those that no module argument names as a secret."""
    return JSON_PASSWORD.sub(rf'\1"{MASK}"', PASSWORD.sub(rf"\1\2{MASK}", text))


def passwords(text: str) -> List[str]:
    """Return the passwords of a file, each as it is written there and without its quotes."""
    written = [found.group(3) for found in PASSWORD.finditer(text)]
    written += [found.group(2) for found in JSON_PASSWORD.finditer(text)]
    return list(dict.fromkeys([*written, *map(_unquoted, written)]))


def hidden(output: str, text: str) -> str:
    """Return what a program printed about a file without the passwords that are in the file."""
    for password in sorted(passwords(text), key=len, reverse=True):
        output = re.sub(rf"(?<!\w){re.escape(password)}(?!\w)", MASK, output)
    return masked(output)


def _unquoted(word: str) -> str:
    try:
        return "".join(shlex.split(word)) or word
    except ValueError:
        return word
