# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each promise of the README links to a test in this repository."""

from __future__ import annotations

import re

import pytest
from support.paths import README, ROOT

TEXT = README.read_text()
TESTS = ("molecule/", ".config/molecule/", "tests/")
LINKS = dict(re.findall(r"^\[(\w+)\]: (\S+)$", TEXT, re.M))
SECTION = TEXT.split("## What you can rely on\n")[1].split("\n[")[0]
PROMISES = re.split(r"\n- ", SECTION)[1:]


def test_there_are_promises():
    assert len(PROMISES) > 5 and all(promise.startswith("**") for promise in PROMISES)


@pytest.mark.parametrize("promise", PROMISES, ids=[promise.split("**")[1] for promise in PROMISES])
def test_a_promise_links_to_its_test(promise):
    names = re.findall(r"\]\[(\w+)\]", promise)
    assert names
    for name in names:
        assert LINKS[name].startswith(TESTS) and (ROOT / LINKS[name]).is_file()


def test_every_test_that_is_named_is_linked_to():
    assert set(LINKS) == set(re.findall(r"\]\[(\w+)\]", SECTION))
