# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of the roles' variables. Ansible ignores one that no role knows, or that a layout sets itself."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Any, Collection, Dict, List, Mapping, NamedTuple

from ..._agent.config.schema import Faults, Field, read, shown

UNDEFINED = re.compile(r"'(?P<name>\w+)' is undefined")
REFERENCE = re.compile(r"\s*\{\{\s*(?P<name>\w+)\s*(\|.*)?\}\}\s*$")  # in which nothing else may be a secret
SECRET = re.compile(r".*_(pass(word)?|bgp(_peers)?)")
DOUBTFUL = 2  # edits from a known name
# What others call the settings of a layout: keepalived itself, and widespread roles for it.
ELSEWHERE = {
    "virtual_ip": "vips",
    "virtual_ips": "vips",
    "virtual_ipaddress": "vips",
    "virtual_router_id": "vrid",
    "router_id": "vrid",
    "priority": "priorities",
    "password": "auth_pass",
    "backends": "services",
    "frontends": "services",
}


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


def unknown_variables(
    names: List[str], known: List[str], owner: str = "role", shared: bool = False, extra: Collection[str] = ()
) -> Unknown:
    """Return what is to be said of names that are close to a known one, or were given for this very run.

    :param shared: whether other projects' roles have variables with this prefix, so that no name is a fault
    :param extra: the names of extra variables: of those with the prefix of known ones each is meant for this run
    """
    found = Unknown([], [])
    prefixes = tuple(each.partition("_")[0] + "_" for each in known)
    for name in sorted(set(names).difference(known)):
        distance, near = min(((edits(name, each), each) for each in known), default=(DOUBTFUL + 1, ""))
        is_meant = not shared and name in extra and name.startswith(prefixes)
        if is_meant:
            near = max(known, key=lambda each: SequenceMatcher(None, each, name).ratio())
        elsewhere = "" if shared else _called_here(name, known)
        if elsewhere and not is_meant and distance > DOUBTFUL:
            found.warnings.append(f"{name} is not a variable of the {owner}: did you mean {elsewhere}?")
        if is_meant or distance <= DOUBTFUL:
            kind = found.faults if is_meant or (distance == 1 and not shared) else found.warnings
            kind.append(f"{name} is not a variable of the {owner}: did you mean {near}?")
    return found


def _called_here(name: str, known: List[str]) -> str:
    """Return the variable that has here what other roles, or the program itself, call so; nothing if there is none."""
    prefix, _line, rest = name.partition("_")
    ours = f"{prefix}_{ELSEWHERE.get(rest)}"
    return ours if ours in known else ""


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


LITERAL = "write {% raw %} before and {% endraw %} after text that is meant literally."


def cyclic(name: str) -> str:
    """Return the sentence about a variable whose template leads back to it."""
    return f"{name} refers to itself: give it a value."


def no_template(name: str) -> str:
    """Return the sentence about a variable with braces that Jinja cannot read, which it may not show."""
    return f"{name} has braces that are not a Jinja template: correct them, or {LITERAL}"


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


def unfit_faults(unfit: List[Dict[str, Any]], prefix: str) -> Faults:
    """Return a sentence for each variable whose program, folder or certificate is not fit for use on a host.

    :param unfit: as `host_info` returns it
    :param prefix: of the role's variables
    """
    return [f"{prefix}_{found['key']} is {shown(found['value'])}: {found['wrong']}" for found in unfit]
