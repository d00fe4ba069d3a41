# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the project's Markdown says that something else depends on: its blocks of code and its tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Set, Tuple

LINK = re.compile(r"\]\(([^)\s]+)\)|^\[\w+\]: (\S+)$", re.MULTILINE)


class Block(NamedTuple):
    """A block of code, with the language that it names, or ''."""

    line: int
    language: str
    code: str


def fenced(path: Path) -> List[Block]:
    """Return all blocks of code of a page."""
    text = path.read_text()
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(text.count("\n", 0, each.start()) + 1, each[1], each[2]) for each in found]


def blocks(path: Path, language: str) -> List[str]:
    """Return the blocks of code of a language; those that name none with an empty one."""
    return [block.code for block in fenced(path) if block.language == language]


def row(path: Path, first: str) -> Dict[str, str]:
    """Return the row of a table that begins with this cell, by the table's headings."""
    headings: List[str] = []
    for line in path.read_text().splitlines():
        if not line.startswith("|"):
            headings = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        headings = headings or cells
        if cells[0] == first:
            return dict(zip(headings, cells))
    raise LookupError(f"{path.name} has no row {first!r}.")


def links(path: Path) -> List[str]:
    """Return where the links and pictures of a page lead to, code left out."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [inline or named for inline, named in LINK.findall(prose)]


def anchors(path: Path) -> Set[str]:
    """Return what GitHub makes of the headings of a page, for links to them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading, _level in headings(path)}


def headings(path: Path) -> List[Tuple[str, int]]:
    """Return the headings of a page, each with its level."""
    prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [(heading, len(marks)) for marks, heading in re.findall(r"^(#+) (.+)$", prose, re.MULTILINE)]


def argument_spec(options: Dict[str, Any]) -> Dict[str, Any]:
    """Return options as Ansible's validator takes them, given as they are documented."""
    kept = ("type", "elements", "choices", "required")
    found = {name: {key: option[key] for key in kept if key in option} for name, option in options.items()}
    for name, option in options.items():
        below = option.get("options") or option.get("suboptions")
        found[name].update({"options": argument_spec(below)} if below else {})
    return found
