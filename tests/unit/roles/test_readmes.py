# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each role's README lists its variables, and each description can be read alone, as ansible-doc shows it."""

from __future__ import annotations

import ast
import functools
import os
import re

import pytest
import yaml
from support.paths import FILTERS, MODULES, ROLES
from support.variable_tables import HEADING, first_sentence, options, section

PUBLIC = sorted(path.name for path in ROLES.iterdir() if path.name not in ("layout", "packages", "variables"))
# What points at another option, which ansible-doc shows elsewhere, because it sorts them.
OPENING = re.compile(r"(The same|Its|It|This|These|That|They|Their|Them|Likewise|Also|And|Or|Otherwise|Such)\b")
PRONOUN = re.compile(r"\b(?<!returns )(?<!takes )(it|its|them|both)\b")
FEW = 6  # words, among which a pronoun has nothing to stand for


@pytest.mark.parametrize("role", PUBLIC)
def test_the_readme_ends_with_the_variables_of_the_argument_specs(role):
    path = ROLES / role / "README.md"
    text, _heading, _variables = path.read_text().partition(HEADING)
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(f"{text.rstrip()}\n\n{section(role)}")
    assert path.read_text() == f"{text.rstrip()}\n\n{section(role)}"


def described(options):
    """Yield each option's place and the first sentence of its description, those inside of others too."""
    for name, option in (options or {}).items():
        yield name, first_sentence(option["description"])
        for inside in ("options", "suboptions", "contains"):
            yield from ((f"{name}.{place}", sentence) for place, sentence in described(option.get(inside)))


def constant(path, name):
    """Return a text that a module assigns to a name."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == name:
            return statement.value.value
    raise AssertionError(f"{path.name} has no {name}")


@functools.lru_cache(maxsize=None)
def documents():
    """Return what ansible-doc shows as a list of options: of roles, and of modules and filters, their results too."""
    found = {role: options(role) for role in PUBLIC}
    for path in sorted(MODULES.glob("*.py")):
        for name in ("DOCUMENTATION", "RETURN"):
            document = yaml.safe_load(constant(path, name)) or {}
            found[f"{path.stem} {name}"] = document.get("options") if name == "DOCUMENTATION" else document
    for path in sorted(FILTERS.glob("*.yml")):
        document = yaml.safe_load(path.read_text())
        found[path.stem] = {**document["DOCUMENTATION"].get("options", {}), **document["RETURN"]}
    return found


def test_no_description_leans_on_another_one():
    everywhere = [(name, *each) for name, options in documents().items() for each in described(options)]
    assert [(name, place, sentence) for name, place, sentence in everywhere if leans(sentence)] == []


def test_no_description_ends_at_a_comma():
    """In a mapping on one line, what follows an unquoted comma is a key of its own."""
    everywhere = [(name, key) for name, options in documents().items() for key in keys(options)]
    assert [(name, key) for name, key in everywhere if " " in key] == []


def keys(document):
    """Yield the keys of a document, those inside of others too; a sample's are the user's."""
    for key, value in (document or {}).items():
        yield str(key)
        if isinstance(value, dict) and key not in ("sample", "default"):
            yield from keys(value)


def leans(sentence):
    return OPENING.match(sentence) or (len(sentence.split()) <= FEW and PRONOUN.search(sentence))
