# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What worked with a release works with the next one, or docs/porting.md says what to write instead."""

from __future__ import annotations

import re

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import presets
from support import releases
from support.paths import DOCS, MODULES, ROLES, ROOT

PAGE = (DOCS / "porting.md").read_text()
ROWS = [tuple(re.findall(r"`([^`]+)`", line)) for line in PAGE.splitlines() if line.startswith("| `")]
MODULES_NOW = {path.stem for path in MODULES.glob("*.py")}
ROUTED = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["plugin_routing"]["modules"]
RELEASED = yaml.safe_load((releases.CHANGELOGS / "changelog.yaml").read_text())["releases"].values()
INTERNAL = {"validate_tags", "validate_variables"}  # said so, and that they may change in any release


def shown(value):
    return str(value) if value != "" else "empty"


def test_each_variable_of_the_last_release_still_works():
    assert releases.last().variables.keys() <= releases.variables().keys()


def test_the_page_has_each_variable_whose_default_differs():
    then, now = releases.last().variables, releases.variables()
    longer = {name for name in then if isinstance(then[name], list) and set(then[name]) < set(now[name])}
    differing = {name for name in then if then[name] != now[name]} - longer
    assert {row for row in ROWS if len(row) == 3} == {(name, shown(then[name]), shown(now[name])) for name in differing}
    assert all(f"`{name}`" in PAGE for name in longer)


def test_the_page_has_each_name_that_still_works_under_another():
    of_presets = {(f"ipi_preset: {old}", f"ipi_preset: {new}") for old, new in presets.FORMER_NAMES.items()}
    of_modules = {(old, route["redirect"].rpartition(".")[2]) for old, route in ROUTED.items()}
    assert {row for row in ROWS if len(row) == 2} == of_presets | of_modules


def test_a_former_name_warns_and_names_the_one_of_now():
    for old, new in presets.FORMER_NAMES.items():
        name, (warning,) = presets.current_name(old)
        assert name == new and repr(old) in warning and repr(new) in warning
    for route in ROUTED.values():
        assert route["redirect"] in route["deprecation"]["warning_text"]
        assert route["deprecation"]["removal_version"].endswith(".0.0")


def test_each_module_and_role_of_every_release_is_there_under_some_name():
    modules = {each["name"] for release in RELEASED for each in release.get("modules", [])}
    assert modules - INTERNAL <= MODULES_NOW | ROUTED.keys()
    roles = {each["name"] for release in RELEASED for each in release.get("objects", {}).get("role", [])}
    assert roles <= {path.name for path in ROLES.iterdir()}
