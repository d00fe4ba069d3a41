# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads configuration files as haproxy, keepalived and systemd do, and fails on what they would refuse.

Written after their parsers, not after the collection's quoting: a word that comes back is the word that the program
gets.
"""

from __future__ import annotations

import re
from typing import Dict, List, Tuple

Words = List[str]

# A part of a word outside quotes, in double quotes or in single quotes; a comment; blanks.
HAPROXY_PART = re.compile(r"""((?:[^\s'"\\#]|\\.)+)|"((?:[^"\\$]|\\.)*)"|'([^']*)'|(\#.*)|(\s+)""")


def haproxy_cfg(text: str) -> List[Words]:
    """Return the words of each line of haproxy.cfg; cfgparse.c and parse_line() of tools.c."""
    return [words for line in text.split("\n") for words in [_haproxy_words(line)] if words]


def _haproxy_words(line: str) -> Words:
    words, word, at = [], None, 0
    while at < len(line):
        found = HAPROXY_PART.match(line, at)
        assert found, f"haproxy cannot read {line!r} from {at} on"
        bare, double, single, comment, blanks = found.groups()
        if comment is not None:
            break
        if blanks is None:
            part = single if single is not None else re.sub(r"\\(.)", r"\1", bare if bare is not None else double)
            word = (word or "") + part
        elif word is not None:
            words.append(word)
            word = None
        at = found.end()
    return words if word is None else [*words, word]


# A text in double quotes, which knows no escapes; a brace; a word; a comment.
KEEPALIVED_TOKEN = re.compile(r'"([^"]*)"|([{}])|([^\s{}"#!]+)|([#!].*)|[ \t]+')
KEEPALIVED_LINE = 1023  # MAXBUF, with its NUL


def keepalived_conf(text: str) -> List[Words]:
    """Return the words of each line of keepalived.conf; decomment(), read_line() and alloc_strvec_r() of parser.c."""
    lines = []
    for line in re.split(r"\n", text):
        is_comment = line.lstrip().startswith(("#", "!"))
        assert len(line.encode()) < KEEPALIVED_LINE and (is_comment or not re.search(r"\$\{?_", line)), line
        words, at = [], 0
        while at < len(line):
            found = KEEPALIVED_TOKEN.match(line, at)
            assert found, f"keepalived cannot read {line!r} from {at} on"
            words += [word for word in found.groups()[:3] if word is not None]
            at = found.end()
        lines += [words] if words else []
    return lines


def keepalived_command(text: str) -> Words:
    """Return the words of a script; alloc_strvec_quoted_escaped(). Versions differ in what a backslash means."""
    assert "\\" not in text and '"' not in text
    assert re.fullmatch(r"(\s*('[^']*'|[^\s']+)+)*\s*", text), text
    return [re.sub(r"'([^']*)'", r"\1", word) for word in re.findall(r"(?:'[^']*'|[^\s'])+", text)]


def unit(text: str) -> Dict[str, List[Tuple[str, str]]]:
    """Return the settings of each section of a unit; config_parse() of conf-parser.c."""
    sections: Dict[str, List[Tuple[str, str]]] = {}
    current: List[Tuple[str, str]] = []
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), [])
        elif line.strip() and line[0] not in "#;":
            name, equals, value = line.partition("=")
            assert equals, f"systemd cannot read {line!r}"
            current.append((name, value))
    return sections


SYSTEMD_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "s": " ", "n": "\n", "t": "\t"}


def exec_words(line: str) -> Words:
    """Return the words of a command of a unit; extract_first_word(), then specifiers, then variables."""
    words, word, quote, at = [], None, "", 0
    while at < len(line):
        sign = line[at]
        if sign == "\\":
            at += 1
            word = (word or "") + SYSTEMD_ESCAPES[line[at]]
        elif sign == quote:
            quote = ""
        elif quote or sign not in " \t'\"":
            word = (word or "") + sign
        elif sign in "'\"":
            quote, word = sign, word or ""
        elif word is not None:
            words.append(word)
            word = None
        at += 1
    assert not quote, f"systemd cannot read {line!r}"
    return [_literal(_literal(each, "%"), "$") for each in [*words, *([word] if word is not None else [])]]


def _literal(word: str, sign: str) -> str:
    """Return a word with its doubled signs as single ones; a lone one would be replaced by systemd."""
    assert sign not in word.replace(sign * 2, ""), f"systemd would replace a part of {word!r}"
    return word.replace(sign * 2, sign)
