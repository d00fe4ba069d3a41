# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Breaks of task lists and playbooks: a keyword says the opposite, a block has lost its end, a task is gone."""

from __future__ import annotations

import json
from typing import Dict, Iterator, List, NamedTuple, Tuple

import yaml

INVERTED = ("when", "failed_when", "changed_when", "no_log", "ignore_errors", "ignore_unreachable", "run_once")
DROPPED = ("always", "rescue")
LISTS = ("tasks", "pre_tasks", "post_tasks", "handlers", "block", *DROPPED)  # of tasks
PLAYS = ("hosts", "import_playbook", "ansible.builtin.import_playbook")


class Break(NamedTuple):
    """Lines that others replace: numbers from 0, without the last one."""

    begin: int
    end: int
    instead: Tuple[str, ...]


def breaks_of(text: str) -> Dict[str, List[Break]]:
    """Return the breaks of a file, by what they break; nothing where there is none of a kind."""
    found: Dict[str, List[Break]] = {}
    lines = text.splitlines()
    root = yaml.compose(text)
    if isinstance(root, yaml.SequenceNode):
        for kind, one in _of_list(root, lines):
            found.setdefault(kind, []).append(one)
    return found


def broken(text: str, one: Break) -> str:
    """Return a file with a break; as it is if that is no YAML: others may refer to a task that is gone."""
    lines = text.splitlines()
    changed = "\n".join([*lines[: one.begin], *one.instead, *lines[one.end :]]) + "\n"
    try:
        yaml.compose(changed)
    except yaml.YAMLError:
        return text
    return changed


def _of_list(tasks: yaml.SequenceNode, lines: List[str]) -> Iterator[Tuple[str, Break]]:
    for task in tasks.value:
        if not isinstance(task, yaml.MappingNode):
            continue
        keys = {key.value for key, _value in task.value}
        if len(tasks.value) > 1 and keys.isdisjoint(PLAYS):
            yield "task", Break(task.start_mark.line, _end(task, lines), ())
        for key, value in task.value:
            yield from _of_keyword(key, value, lines)
            if key.value in LISTS and isinstance(value, yaml.SequenceNode):
                yield from _of_list(value, lines)


def _of_keyword(key: yaml.Node, value: yaml.Node, lines: List[str]) -> Iterator[Tuple[str, Break]]:
    begin, column = key.start_mark.line, key.start_mark.column
    before = lines[begin][:column]
    if key.value in DROPPED and not before.strip():
        yield key.value, Break(begin, _end_of_entry(key, value, lines), ())
    inverse = _inverse(value) if key.value in INVERTED else ""
    if inverse:
        yield key.value, Break(begin, _end_of_entry(key, value, lines), (f"{before}{key.value}: {inverse}",))


def _inverse(value: yaml.Node) -> str:
    """Return what says the opposite, as YAML; '' if that is not known."""
    if isinstance(value, yaml.SequenceNode):
        return json.dumps(f"not ({' and '.join(f'({each.value})' for each in value.value)})")
    if not isinstance(value, yaml.ScalarNode):
        return ""
    text = value.value.strip()
    if value.tag == "tag:yaml.org,2002:bool":
        return "false" if text.lower() in ("true", "yes", "on") else "true"
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        return json.dumps(f"{{{{ not ({text[2:-2].strip()}) }}}}")
    return "" if "{{" in text else json.dumps(f"not ({text})")


def _end_of_entry(key: yaml.Node, value: yaml.Node, lines: List[str]) -> int:
    """Return the number of the line after an entry. The marks of an alias are those of its anchor."""
    return max(key.end_mark.line + 1, _end(value, lines))


def _end(node: yaml.Node, lines: List[str]) -> int:
    """Return the number of the line after a node. The mark of a block's end is where the next one begins."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        end = node.end_mark.line + (node.end_mark.column > 0)
    elif isinstance(node, yaml.MappingNode):
        end = _end_of_entry(*node.value[-1], lines)
    else:
        end = _end(node.value[-1], lines)
    while end > node.start_mark.line + 1 and not lines[end - 1].strip():
        end -= 1
    return end
