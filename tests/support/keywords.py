# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes which keywords of tasks and playbooks are reached: conditions both ways, others where they have an effect."""

from __future__ import annotations

import atexit
import functools
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

import yaml

from support.mirrors import mirrored
from support.paths import ROOT

CONDITIONS = ("when", "failed_when", "changed_when", "until")
# What has to become of a task that has it, or of the first task in it.
EFFECTS = {
    "no_log": {"ran"},
    "run_once": {"ran"},
    "ignore_errors": {"failed"},
    "ignore_unreachable": {"unreachable"},
    "rescue": {"after a failure"},
    "always": {"after a failure", "after success"},
}
FOLDER = os.environ.get("ONPREM_LB_KEYWORDS", "")  # where each process of the tests writes what it has reached

Place = Tuple[str, int]
reached: Dict[Place, Set[str]] = {}
real_path = functools.lru_cache(maxsize=None)(os.path.realpath)  # a thousand tasks of a play are in some files


class Keyword(NamedTuple):
    """A keyword of a task or block, and what is wanted of it."""

    path: str
    line: int  # of its value
    name: str
    judged: int  # the line that the plays note
    wanted: Set[str]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}"


def note(value: Any, *ways: str) -> None:
    """Note what became of something in a file, as Ansible knows its place."""
    from ansible._internal._datatag._tags import Origin

    origin = Origin.get_tag(value)
    if origin is not None and origin.path and origin.line_num:
        reached.setdefault((real_path(origin.path), int(origin.line_num)), set()).update(ways)


def played(task: Any, result: Dict[str, Any], has_failed: bool) -> None:
    """Note how a task ended."""
    if not result.get("skipped"):
        ended = "unreachable" if result.get("unreachable") else "failed" if result.get("failed") else "ended"
        note(task.get_ds(), "ran", ended, "after a failure" if has_failed else "after success")


def keywords(path: str) -> Iterator[Keyword]:
    """Yield the keywords of a file. Those of an anchor count once."""
    seen: Set[str] = set()
    for keyword in _of(path, yaml.compose((ROOT / path).read_text())):
        if str(keyword) not in seen:
            yield keyword
        seen.add(str(keyword))


def _of(path: str, node: Any) -> Iterator[Keyword]:
    for each in node.value if isinstance(node, yaml.SequenceNode) else []:
        for key, value in each.value if isinstance(each, yaml.MappingNode) else []:
            if key.value in CONDITIONS:
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    line = part.start_mark.line + 1
                    if part.value in ("true", "false"):
                        yield Keyword(path, line, key.value, each.start_mark.line + 1, {"ran"})
                    else:
                        yield Keyword(path, line, key.value, line, {"True", "False"})
            elif key.value in EFFECTS and value.value != "false":
                inside = value.value[0] if key.value in ("rescue", "always") else each
                line = inside.start_mark.line + 1
                yield Keyword(path, key.start_mark.line + 1, key.value, line, EFFECTS[key.value])
            yield from _of(path, value)


def unreached(found: Dict[Place, Set[str]]) -> List[str]:
    """Say of each keyword that is not reached what is missing."""
    each = [keyword for path in mirrored() for keyword in keywords(path)]
    missing = [
        (keyword, keyword.wanted - found.get((str(ROOT / keyword.path), keyword.judged), set())) for keyword in each
    ]
    return [f"{keyword} never {' nor '.join(sorted(ways))}" for keyword, ways in missing if ways]


def read(folder: Path) -> Dict[Place, Set[str]]:
    """Return what all processes together have reached."""
    found: Dict[Place, Set[str]] = {}
    for file in folder.glob("*.json"):
        for path, line, ways in json.loads(file.read_text()):
            found.setdefault((path, line), set()).update(ways)
    return found


if FOLDER:

    @atexit.register
    def write() -> None:
        seen = [[path, line, sorted(ways)] for (path, line), ways in reached.items()]
        Path(FOLDER, f"{os.getpid()}.json").write_text(json.dumps(seen))
