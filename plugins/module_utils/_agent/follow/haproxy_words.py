# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The words of a line of HAProxy's configuration, as HAProxy splits it: quotes, escapes and comments. Pure.

https://docs.haproxy.org/3.2/configuration.html#2.2
"""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

SPACE = " \t\r\v\f"
STRONG, WEAK, ESCAPE, COMMENT, VARIABLE = "'", '"', "\\", "#", "$"
LITERAL = (" ", STRONG, WEAK, ESCAPE, COMMENT)  # behind a backslash
ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


class Unclear(Exception):
    """What a line says depends on more than the line; the text says on what."""


class Word(NamedTuple):
    """A word, and where it is in its line."""

    text: str
    begin: int
    end: int
    varies: bool = False  # whether a variable of the environment is in it


def split(line: str) -> List[Word]:
    """Return the words of a line. Raises Unclear for a quote without an end."""
    words: List[Word] = []
    at = 0
    while True:
        while at < len(line) and line[at] in SPACE:
            at += 1
        if at >= len(line) or line[at] == COMMENT:
            return words
        word = _word(line, at)
        words.append(word)
        at = word.end


def _word(line: str, begin: int) -> Word:
    text, quote, varies, at = "", "", False, begin
    while at < len(line) and (quote or line[at] not in SPACE + COMMENT):
        sign = line[at]
        if sign in (STRONG, WEAK) and quote in ("", sign):
            quote = "" if quote else sign
        elif sign == ESCAPE and quote != STRONG:
            escaped, length = _escaped(line, at, quote)
            text, at = text + escaped, at + length - 1
        else:
            varies = varies or (sign == VARIABLE and quote == WEAK)
            text += sign
        at += 1
    if quote:
        raise Unclear("a quote has no end")
    return Word(text, begin, at, varies)


def _escaped(line: str, at: int, quote: str) -> Tuple[str, int]:
    """Return what a backslash and what follows it stand for, and how long they are."""
    following = line[at + 1 : at + 2]
    if following == "x":
        try:
            return chr(int(line[at + 2 : at + 4], 16)), 4
        except ValueError as fault:
            raise Unclear("a \\x is not followed by two digits") from fault
    if following in ESCAPED:
        return ESCAPED[following], 2
    if following in LITERAL or (following == VARIABLE and quote):
        return following, 2
    return ESCAPE, 1


def for_the_runtime_api(text: str) -> str:
    """Return a word as the runtime API reads it back: there a space ends it, and a ; the command."""
    return "".join(f"{ESCAPE}{sign}" if sign in f"{SPACE}{ESCAPE};" else sign for sign in text)
