# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sections of an haproxy.cfg that somebody else has written, with the words of each line. Pure."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults
from ..._agent.follow import haproxy_words
from ..._agent.follow.haproxy_file import CONDITIONS, SECTIONS

INDENT = "    "
COMMENT = "#"


class Inexpressible(Exception):
    """What no variable has. The text says it, and begins with the number of its line where it is one."""


class Line(NamedTuple):
    """A line that is no comment."""

    number: int
    text: str  # without what is around it
    words: Tuple[str, ...]

    @property
    def keyword(self) -> str:
        return self.words[0]

    @property
    def option(self) -> str:
        """The option that it sets; '' for another line."""
        return self.words[1] if self.keyword == "option" and self.words[1:] else ""

    @property
    def shown(self) -> str:
        """How it begins, without what may be a secret."""
        return " ".join(self.words[: 2 if self.keyword in ("option", "timeout", "no", "stats") else 1])

    def refused(self, why: str) -> Inexpressible:
        return Inexpressible(f"line {self.number} ({self.shown}): {why}")


class Section(NamedTuple):
    """A section."""

    kind: str
    name: str
    parent: Optional[str]  # the name of the defaults that it is from
    number: int  # of its first line
    lines: Tuple[Line, ...]  # without the first one
    texts: Tuple[str, ...]  # all of its lines, with comments

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}".strip()

    def having(self, *keywords: str) -> List[Line]:
        return [line for line in self.lines if line.keyword in keywords]

    def values(self, keyword: str) -> List[str]:
        return [line.words[1] for line in self.having(keyword) if line.words[1:]]


def read(text: str) -> Tuple[List[Section], Faults]:
    """Return the sections, and a sentence for each line without which the rest cannot be understood."""
    faults: Faults = []
    lines, texts = [], text.replace("\r\n", "\n").split("\n")
    for number, each in enumerate(texts, 1):
        words = _words(number, each, faults)
        lines.append(Line(number, each.strip(), words))
    heads = [at for at, line in enumerate(lines) if line.words and line.keyword in SECTIONS]
    faults += _before_sections(lines[: heads[0] if heads else len(lines)])
    faults += _in_conditions(lines)
    ends = [*heads[1:], len(lines)]
    sections = [_section(lines[begin:end], texts[begin:end]) for begin, end in zip(heads, ends)]
    return sections, faults or ([] if sections else ["it has no section, so that there is nothing to convert."])


def _words(number: int, text: str, faults: Faults) -> Tuple[str, ...]:
    if "\0" in text:
        faults.append(f"line {number} has a NUL byte, at which HAProxy ends the line: take it out.")
        return ()
    try:
        return tuple(word.text for word in haproxy_words.split(text))
    except haproxy_words.Unclear as error:
        faults.append(f"line {number}: {error}: complete it.")
        return ()


def _before_sections(lines: Sequence[Line]) -> Faults:
    return [
        f"line {line.number} ({line.shown}) is in no section, where HAProxy refuses it: move it into one."
        for line in lines
        if line.words and not line.keyword.startswith(".")
    ]


def _in_conditions(lines: Sequence[Line]) -> Faults:
    """Refuse sections that there are only if HAProxy finds that a condition is true."""
    depth, found = 0, []
    for line in lines:
        keyword = line.keyword if line.words else ""
        depth += {".if": 1, ".endif": -1}.get(keyword, 0)
        if depth and keyword in SECTIONS:
            found.append(f"line {line.number} is a section inside a .if, which only HAProxy can judge: move it out.")
    return found


def _section(lines: Sequence[Line], texts: Sequence[str]) -> Section:
    words = lines[0].words
    parent = words[words.index("from") + 1] if "from" in words[1:-1] else None
    name = words[1] if words[1:] and words[1] != "from" else ""
    body = tuple(line for line in lines[1:] if line.words)
    return Section(words[0], name, parent, lines[0].number, body, _laid_out(texts))


def _laid_out(texts: Sequence[str]) -> Tuple[str, ...]:
    """Return lines as raw lines have them, without empty ones, and without comments that stand before what follows."""
    found = [texts[0].strip(), *(f"{INDENT}{text.strip()}" for text in texts[1:] if text.strip())]
    while found[-1].strip().startswith(COMMENT):
        found.pop()
    return tuple(found)


def lineage(sections: Sequence[Section], mine: Section) -> List[Line]:
    """Return the lines of the defaults that count for a section, the most general first."""
    before = [each for each in sections if each.kind == "defaults" and each.number < mine.number]
    named: Dict[str, Section] = {each.name: each for each in before if each.name}
    if mine.parent is not None:
        if mine.parent not in named:
            raise Inexpressible(f"line {mine.number}: there is no defaults {mine.parent} before it")
        found = named[mine.parent]
    elif mine.kind == "defaults" or not before:
        return []
    else:
        found = before[-1]
    return [*lineage(sections, found), *found.lines]


def is_conditional(section: Section) -> bool:
    """Return whether only HAProxy can tell which of the lines count."""
    return any(line.keyword in CONDITIONS for line in section.lines)
