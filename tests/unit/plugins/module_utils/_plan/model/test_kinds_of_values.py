# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each variable of a component role, and each key in its lists, with a value of each kind.

It is taken, or refused in one sentence that names it. No rule judges the default of what was refused.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components
from support.certificates import certificate_text
from support.kinds import PYTHONS, VALUES, is_of_mappings
from support.variable_tables import options

PEM = json.dumps(certificate_text())  # which is a text of YAML's, too
GIVEN = yaml.safe_load((Path(__file__).parent / "kinds_of_values.yml").read_text().replace("CERTIFICATE", PEM))
ROWS = [(role, given) for role, rows in GIVEN.items() for given in rows]


def paths(value, path=()):
    """Yield the path of each key in mappings and lists of them."""
    for key, item in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        for at, each in enumerate(item if isinstance(item, list) else ()):
            yield from paths(each, (*path, key, at))
        yield from paths(item, (*path, key))


def changed(given, path, value):
    found = json.loads(json.dumps(given))  # in which nothing is there twice
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


def faults(role, given):
    return components.faults({f"{role}_{key}": value for key, value in given.items()})


@pytest.mark.parametrize("role, given", ROWS)
def test_the_values_are_good_before_one_of_them_is_another(role, given):
    assert faults(role, given) == []


@pytest.mark.parametrize("role, given", ROWS)
def test_a_key_is_taken_or_refused_in_one_sentence_that_names_it(role, given):
    for path in paths(given):
        for kind, value in VALUES.items():
            found = faults(role, changed(given, path, value))
            assert all(PYTHONS.search(each.replace(str(value), "")) is None for each in found), (path, kind, found)
            # With null the default counts, which may not go with the others.
            assert len(found) < 2 or value is None or is_of_mappings(value), (path, kind, found)
            assert value is None or all(each.startswith(f"{role}_{path[0]}") for each in found), (path, kind, found)


@pytest.mark.parametrize("name", [name for role in components.COMPONENTS for name in options(role)])
def test_a_variable_is_taken_or_refused_in_one_sentence_that_names_it(name):
    for kind, value in VALUES.items():
        found = components.faults({name: value})
        assert all(PYTHONS.search(each.replace(str(value), "")) is None for each in found), (kind, found)
        assert len(found) < 2 or is_of_mappings(value), (kind, found)
        assert all(each.startswith(name) for each in found), (kind, found)


def test_each_key_of_a_list_of_mappings_is_among_them():
    known = {(role, *(key for key in path if isinstance(key, str))) for role, given in ROWS for path in paths(given)}
    wanted = {(role, *path) for role in GIVEN for path in _described(role)}
    assert wanted - known == set()


def _described(role):
    specs = {name[len(role) + 1 :]: option for name, option in options(role).items() if "options" in option}
    return [(name, *path) for name, option in specs.items() for path in _keys(option["options"])]


def _keys(spec):
    for key, option in spec.items():
        yield (key,)
        yield from ((key, *path) for path in _keys(option.get("options", {})))
