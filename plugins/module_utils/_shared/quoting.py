# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes texts into configuration files so that their program reads them back unchanged. Pure.

There is one function for each format, and templates have it as a filter. What a format cannot express raises
``Unquotable``. The model asks the same functions first, so that such a text is refused before anything changes.

Nothing free stands in an nft ruleset, in sysctl's file or in the agent's JSON: the first two have numbers and parsed
addresses alone, and JSON has a serializer.
"""

from __future__ import annotations

import re
import shlex
from typing import List

from .._agent.config import shell_words

# keepalived reads lines into 1024 bytes; the rest is for the keyword, the quotes and the indentation.
KEEPALIVED_LENGTH = 960
NAME_LENGTH = 255  # Linux's NAME_MAX, for each part of a path
# Variables that keepalived itself defines: $_PWD, $_INSTANCE, $_RANDOM.
KEEPALIVED_VARIABLE = re.compile(r"\$\{?_")
KEEPALIVED_PLAIN = re.compile(r"[\w./:%+=,@-]+", re.ASCII)
SYSTEMD_PLAIN = re.compile(r"[\w./:+=,@$%-]+", re.ASCII)
PROGRAM = re.compile(r"/[\w./+-]*[\w+-]", re.ASCII)


class Unquotable(ValueError):
    """A format cannot express a text. The message follows "PLACE is VALUE: "."""


def haproxy(text: str) -> str:
    """Return a word of haproxy.cfg. haproxy reads single quotes as a shell does."""
    _refuse_unprintable(text)
    return shlex.quote(text)


def haproxy_words(text: str) -> str:
    """Return words of haproxy.cfg, from words as a shell reads them."""
    return " ".join(map(haproxy, _split(text)))


def keepalived(text: str) -> str:
    """Return a word of keepalived.conf, which knows double quotes, and nothing for a double quote inside them."""
    _refuse_unprintable(text)
    for sign in '"\\':
        if sign in text:
            raise Unquotable(f"keepalived.conf cannot have the character {sign} there, leave it out.")
    if text in ("{", "}"):
        raise Unquotable(f"keepalived takes {text} for a block's, also in quotes, write more than that.")
    variable = KEEPALIVED_VARIABLE.search(text)
    if variable:
        raise Unquotable(f"keepalived would replace what begins with {variable.group()}, leave it out.")
    if len(text.encode()) > KEEPALIVED_LENGTH:
        raise Unquotable(f"keepalived reads {KEEPALIVED_LENGTH} bytes at most, shorten it.")
    return text if KEEPALIVED_PLAIN.fullmatch(text) else f'"{text}"'


def keepalived_command(command: str) -> str:
    """Return a command of keepalived.conf: words in single quotes, in a text in double quotes.

    keepalived 2.2 and 2.3 differ in what a backslash means there.
    """
    words = _words(command)
    for sign in "'\"\\":
        if any(sign in word for word in words):
            raise Unquotable(f"keepalived.conf cannot have the character {sign} inside a word: write a script.")
    text = " ".join(word if KEEPALIVED_PLAIN.fullmatch(word) else f"'{word}'" for word in words)
    quoted = keepalived(text)
    return quoted if quoted != text else f'"{text}"'


def systemd_command(command: str) -> str:
    """Return a command line for ``ExecStart=`` and its like, from one in a shell's words. No shell runs it.

    Its percent and dollar signs are literal, which systemd does not allow in the path of the program.
    """
    words = _words(command)
    if not PROGRAM.fullmatch(words[0]):
        raise Unquotable("an absolute path to the program is required first, of letters, digits and . _ + - / only.")
    if any(len(part) > NAME_LENGTH for part in words[0].split("/")):
        raise Unquotable(f"each part of a path has at most {NAME_LENGTH} characters, shorten it.")
    return " ".join(map(_systemd_word, words))


def systemd_shell(script: str) -> str:
    """Return the command line for ``ExecStart=`` and its like that has a shell run a script."""
    return systemd_command(f"/bin/sh -c {shlex.quote(script)}")


def _systemd_word(word: str) -> str:
    literal = word.replace("%", "%%").replace("$", "$$")
    if SYSTEMD_PLAIN.fullmatch(word):
        return literal
    return "'" + literal.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _words(command: str) -> List[str]:
    words = _split(command)
    if not words:
        raise Unquotable("a program and its arguments are required.")
    return words


def _split(text: str) -> List[str]:
    """Split a text as a shell does."""
    _refuse_unprintable(text)
    try:
        return shell_words.split(text)
    except shell_words.Unfinished as error:
        raise Unquotable(str(error)) from error


def _refuse_unprintable(text: str) -> None:
    if not text.isprintable():
        raise Unquotable("one line of printable characters is required.")
