# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A filter for users has a page of its own, which ansible-doc shows. One of the roles and playbooks has a docstring."""

from __future__ import annotations

import importlib

import pytest
import yaml
from support.paths import ROOT

FOLDER = ROOT / "plugins" / "filter"
FILTERS = {
    name: function
    for file in sorted(FOLDER.glob("*.py"))
    for name, function in importlib.import_module(f"ansible_collections.onprem.lb.plugins.filter.{file.stem}")
    .FilterModule()
    .filters()
    .items()
}
PAGES = {file.stem: yaml.safe_load(file.read_text())["DOCUMENTATION"] for file in FOLDER.glob("*.yml")}


def test_each_page_is_that_of_a_filter():
    assert PAGES.keys() <= FILTERS.keys()
    assert {name: page["name"] for name, page in PAGES.items()} == {name: name for name in PAGES}


@pytest.mark.parametrize("name", sorted(FILTERS.keys() - PAGES.keys()))
def test_a_filter_without_a_page_has_a_docstring(name):
    assert FILTERS[name].__doc__


def test_no_page_is_that_of_an_internal_filter():
    assert [name for name, page in PAGES.items() if "Internal" in str(page)] == []
