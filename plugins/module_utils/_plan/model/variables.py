# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of the roles' variables, and the tags of a run. Ansible ignores those that it does not know."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

from ..._agent.config.schema import Faults, Field, read

OF_COMPONENT = re.compile(r"(?:haproxy|keepalived|agent|resolver)_(?P<key>\w+)")
UNDEFINED = re.compile(r"'(?P<name>\w+)' is undefined")
REFERENCE = re.compile(r"\s*\{\{\s*(?P<name>\w+)\s*(\|.*)?\}\}\s*$")  # in which nothing else may be a secret
SECRET = re.compile(r".*_pass(word)?")
DOUBTFUL = 2  # edits from a known name
NOT_SKIPPED = ("always", "never")  # what may be skipped whatever a playbook's tags are


class Unknown(NamedTuple):
    """A sentence for each variable that is close to a known one."""

    faults: Faults
    warnings: List[str]


def as_role_variables(fault: str, prefix: str) -> str:
    """Settings are read as the keys of one mapping; in a sentence they are named PREFIX_KEY, as the user wrote them."""
    return re.sub(rf"^({prefix}(?:_stats)?)\.", r"\1_", fault)


def read_given(schema: Mapping[str, Field], given: Dict[str, Any], prefix: str, faults: Faults) -> None:
    """Judge the variables that are given. Tasks read null as a value, so that it does not stand for the default."""
    own = {key: given[key] for key in schema if key in given}
    read(schema, own, prefix, faults)
    faults += [f"{prefix}.{key} is null: {schema[key].check(None)[1]}" for key in own if own[key] is None]


def unknown_variables(names: List[str], known: List[str], owner: str = "role", shared: bool = False) -> Unknown:
    """Return what is to be said of names that are close to a known one.

    :param shared: whether other projects' roles have variables with this prefix, so that no name is a fault
    """
    found = Unknown([], [])
    for name in sorted(set(names).difference(known)):
        distance, near = min(((edits(name, each), each) for each in known), default=(DOUBTFUL + 1, ""))
        if distance <= DOUBTFUL:
            kind = found.faults if distance == 1 and not shared else found.warnings
            kind.append(f"{name} is no variable of the {owner}: did you mean {near}?")
    return found


def edits(one: str, other: str) -> int:
    """Return how many letters are inserted, left out, replaced or swapped with the next one; more than 2 are 3."""
    if abs(len(one) - len(other)) > DOUBTFUL:
        return DOUBTFUL + 1
    before: List[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one):
        earlier, before, row = before, row, [at + 1]
        for place, wanted in enumerate(other):
            best = min(before[place + 1] + 1, row[place] + 1, before[place] + (letter != wanted))
            if at and place and letter == other[place - 1] and one[at - 1] == wanted:
                best = min(best, earlier[place - 1] + 1)
            row.append(best)
    return min(row[-1], DOUBTFUL + 1)


LITERAL = "write {% raw %} before and {% endraw %} behind a text that is meant as it stands."


def cyclic(name: str) -> str:
    """Return the sentence about a variable whose template leads back to it."""
    return f"{name} refers to itself: give it a value."


def no_template(name: str) -> str:
    """Return the sentence about a variable with braces that Jinja cannot read, which it may not show."""
    return f"{name} has braces that are no template of Jinja: correct them, or {LITERAL}"


def sealed(name: str) -> str:
    """Return the sentence about a variable in a vault that Ansible cannot open."""
    return f"{name} is in a vault that cannot be opened: give its password with --vault-id or --ask-vault-pass."


def unevaluable(name: str, said: str, template: Any = "") -> str:
    """Return the sentence about a variable that cannot be evaluated.

    :param said: Ansible's words, which may have a part of a secret
    :param template: the variable as it is written
    """
    undefined = UNDEFINED.search(said)
    refers = REFERENCE.match(template) if isinstance(template, str) else None
    if SECRET.fullmatch(name) and not (undefined and refers and undefined["name"] == refers["name"]):
        return f"{name} cannot be evaluated: set what its template refers to, correct it, or {LITERAL}"
    if undefined:
        return f"{name} refers to {undefined['name']}, which is not set: set it, or correct its name."
    sentences = dict.fromkeys(
        part.rstrip(".") for part in " ".join(said.split()).split(". ")
    )  # older Ansible repeats them
    return f"{name} cannot be evaluated: {'. '.join(sentences)}."


def overruled_variables(names: List[str], known: List[str], prefix: str, tasks: Any) -> Faults:
    """Return a sentence for each variable of a component role that a layout's own tasks replace.

    :param known: the layout's variables
    :param tasks: the layout's task files, parsed
    """
    own = {name: OF_COMPONENT.fullmatch(name) for name in _task_variables(tasks)}
    sentences = []
    for name in names:
        found = own.get(name)
        if found:
            instead = f"{prefix}_{found['key']}"
            mend = f"set {instead} instead." if instead in known else f"{prefix} computes it, leave it out."
            sentences.append(f"{name} has no effect here: {mend}")
    return sentences


def _task_variables(tasks: Any) -> Iterator[str]:
    """Yield the names of all variables that tasks and blocks set for themselves."""
    if isinstance(tasks, dict):
        given: Dict[str, Any] = tasks.get("vars") or {}
        yield from given
        tasks = list(tasks.values())
    if isinstance(tasks, list):
        for task in tasks:
            yield from _task_variables(task)


def unfit_faults(unfit: List[Dict[str, Any]], prefix: str) -> Faults:
    """Return a sentence for each variable whose program, folder or certificate is not fit for use on a host.

    :param unfit: as `host_info` returns it
    :param prefix: of the role's variables
    """
    return [f"{prefix}_{found['key']} is {found['value']!r}: {found['wrong']}" for found in unfit]


def tag_faults(run: List[str], skip: List[str], known: List[str]) -> Faults:
    """Return a sentence for ``--tags`` and one for ``--skip-tags``, where they select nothing, or all.

    Of a tag that no task has, Ansible says nothing: it does nothing, or skips nothing.

    :param run: as in ``ansible_run_tags``
    :param skip: as in ``ansible_skip_tags``
    :param known: the tags of the playbook. Every task that a stage needs has all of them.
    """
    usual = ["all", "tagged" if known else "untagged"]
    unknown = ", ".join(tag for tag in run if tag not in [*usual, *known])
    skipped = ", ".join(tag for tag in skip if tag not in NOT_SKIPPED)
    stages = ", ".join(known)
    found = []
    if unknown:
        mend = f"choose of {stages}." if known else "the playbook has no tags, leave it out."
        found.append(f"--tags names {unknown}, which no task has: {mend}")
    if skipped:
        mend = (
            f"name the stages to run with --tags, of {stages}." if known else "the playbook has no tags, leave it out."
        )
        found.append(f"--skip-tags names {skipped}, which skips everything or nothing: {mend}")
    return found
