# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Finds and masks the secrets of configuration files, in each form in which they are written. Pure.

What is not known to be one stays legible: a diff of which nothing can be read helps nobody.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shlex
from typing import Any, Collection, Dict, Iterable, List, Pattern, Set
from urllib import parse

from .._shared import quoting
from .._shared.harmless import is_harmless

QUOTES = (
    quoting.haproxy,
    quoting.haproxy_words,
    quoting.keepalived,
    quoting.keepalived_command,
    quoting.systemd_command,
)
MASK = "********"
# A word of haproxy.cfg or keepalived.conf, parts of which may be in quotes.
WORD = r"""(?:'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|\\.|[^\s'"\\]|['"])+"""
# A header that a raw line of haproxy.cfg sends with a password or a token, by its name.
HEADER = r"(?:hdr|(?:set|add|replace)-header)[ \t]+(?i:[\w-]*(?:auth|cookie|key|passw|secret|session|token)[\w-]*)"
# What an environment has, and what a check logs in with.
OF_PROGRAMS = r"(?:pre)?setenv[ \t]+\w+|send[ \t]+[\"']?AUTH"
# What precedes a password there, and in the agent's JSON.
BEFORE = rf"auth_pass|insecure-password|password|stats[ \t]+auth|{HEADER}|{OF_PROGRAMS}"
PASSWORD = re.compile(rf"\b({BEFORE})([ \t]+|\\ )({WORD})")
JSON_PASSWORD = re.compile(r'("auth_pass":\s*)("(?:[^"\\]|\\.)+")')
# What any text is made of, whatever its format: a program may quote a part of a line.
PIECE = re.compile(r"""[^\s'"\\=?&,;@<>|()\[\]{}]+""")
SHORTEST = 4  # letters of a part of a secret that is looked for by itself
DIRECTIVE = re.compile(r"[a-z][a-z0-9_.-]{0,29}")
# What would be masked everywhere if it were somebody's password: short numbers, and the programs' own words.
TRIVIAL = re.compile(
    r"\W*|.|\d{1,4}|[\d.]{1,7}([num]?s|[hdkKmMgG%])?|haproxy|keepalived|admin|root|true|false|none|null|yes|no|on|off",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Return a text without its passwords, even those that no module argument names as a secret."""
    return JSON_PASSWORD.sub(rf'\1"{MASK}"', PASSWORD.sub(rf"\1\2{MASK}", text))


def passwords(text: str) -> List[str]:
    """Return the passwords of a file, each as it is written there and without its quotes."""
    written = [found.group(3) for found in PASSWORD.finditer(text)]
    written += [found.group(2) for found in JSON_PASSWORD.finditer(text)]
    return list(dict.fromkeys([*written, *map(_unquoted, written)]))


def _unquoted(word: str) -> str:
    try:
        return "".join(shlex.split(word)) or word
    except ValueError:
        return word


def is_trivial(text: str) -> bool:
    """Whether a text stands in so many places that to mask it there would hide more than a secret."""
    return bool(TRIVIAL.fullmatch(text))


def forms(secret: str) -> Set[str]:
    """Return a secret as it is typed, and as the files, programs and logs that have it write it."""
    quoted = {secret}
    for quote in QUOTES:
        with contextlib.suppress(quoting.Unquotable):
            quoted.add(quote(secret))
    written_out = (json.dumps, lambda text: json.dumps(text, ensure_ascii=False), repr)
    logged = {write(text)[1:-1] for text in quoted for write in written_out}
    written = secret.encode("utf-8", "surrogateescape")
    encoded = {base64.b64encode(written).decode().rstrip("="), base64.urlsafe_b64encode(written).decode().rstrip("=")}
    in_urls = {parse.quote(written), parse.quote(written, safe=""), parse.quote_plus(written)}
    return {*quoted, *logged, *in_urls, *encoded}


def pieces(text: str) -> List[str]:
    """Return the words of a text, also those that are joined by a colon."""
    words = PIECE.findall(text)
    return [*words, *(part for word in words if ":" in word for part in word.split(":") if part)]


class Masks:
    """Masks secrets in whatever is said: whole, and each of their words that stands nowhere else in the files."""

    def __init__(self, secrets: Iterable[str], contents: Collection[str] = ()) -> None:
        """Begin with the secrets that are known, and the files, whose passwords are found."""
        given = {*secrets, *(password for content in contents for password in passwords(content))}
        whole = {form for secret in given if not is_trivial(secret) for form in forms(secret)}
        rest = _any_of(whole).sub(" ", "\n".join(contents)) if whole else "\n".join(contents)
        familiar = {*pieces(rest)}
        words = {word for secret in given for word in pieces(secret) if len(word) >= SHORTEST}
        unfamiliar = {word for word in words if word not in familiar and not is_trivial(word)}
        self._hidden = {*whole, *(form for word in unfamiliar for form in forms(word))}
        self._pattern = _any_of(self._hidden)

    def text(self, said: str) -> str:
        """Return a text with the secrets masked."""
        return self._pattern.sub(MASK, said) if self._hidden else said

    def all(self, said: Any) -> Any:
        """Return a value with the secrets masked in all its texts."""
        if isinstance(said, str):
            return self.text(said)
        if isinstance(said, dict):
            return {self.all(key): self.all(each) for key, each in said.items()}
        return [self.all(each) for each in said] if isinstance(said, (list, tuple)) else said


def _any_of(texts: Collection[str]) -> Pattern[str]:
    """Match each of the texts, the longest first, and none within a longer word."""
    each = [rf"{_edge(text[0], '<!')}{re.escape(text)}{_edge(text[-1], '!')}" for text in texts if text]
    return re.compile("|".join(sorted(each, key=len, reverse=True)))


def _edge(sign: str, looks: str) -> str:
    return rf"(?{looks}\w)" if re.match(r"\w", sign) else ""


def hidden(output: str, text: str, others: Iterable[str] = ()) -> str:
    """Return what a program printed about a file without the passwords that are in the file, nor a word of others.

    :param others: the texts of the other files that the program names, of which nobody knows what is secret
    """
    familiar = {*pieces(text)}
    strange = {word for word in pieces(output) if not (word in familiar or len(word) < SHORTEST or is_harmless(word))}
    quoted = [word for each in others for word in strange if word in each]
    return masked(Masks(quoted, [text]).text(output))


def of_before(before: str, after: str) -> str:
    """Return the text of a file that is replaced, in which nobody knows any more what was a secret.

    Of each line its directive, what is harmless, and what stands in the new text as well.
    """
    known = {*pieces(after)}
    seen: Dict[str, bool] = {}

    def is_shown(word: str) -> bool:
        if word not in seen:
            seen[word] = word in known or len(word) < SHORTEST or is_trivial(word) or is_harmless(word)
        return seen[word]

    lines = []
    for line in before.splitlines(keepends=True):
        first = PIECE.search(line)
        start = first.end() if first and DIRECTIVE.fullmatch(first.group()) else 0
        rest = PIECE.sub(lambda found: found.group() if is_shown(found.group()) else MASK, line[start:])
        lines.append(line[:start] + rest)
    return "".join(lines)
