# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all unit tests need before they are imported."""

from __future__ import annotations

import gc

import pytest
import pythons
import yaml
from hypothesis import HealthCheck, settings
from support import collection, leaks, playbooks
from support.scope import SCOPE

# How many examples each property is tried with. "each line" is for Pythons under which it is enough that each line
# runs; see tests/pythons.py.
# On a machine that does other work, too, the time that an example takes says nothing about the tested code.
for name, examples in (("each line", 20), ("quick", 30), ("full", 200)):
    settings.register_profile(name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(SCOPE)

# What safe_load reads with: libyaml takes a tenth of the time.
yaml.SafeLoader = yaml.CSafeLoader
# Plans and templates are many objects, and hardly any of them is garbage: to search them seldom saves some 6 %.
gc.set_threshold(50_000)
collection.make_importable()
nothing_is_left = leaks.nothing_is_left


@pytest.fixture(scope="session", autouse=True)
def no_prepared_ansible_is_left(nothing_is_left):
    yield
    playbooks.end_prepared()


def pytest_addoption(parser):
    parser.addoption("--controller-only", action="store_true", help="leave out what tests/pythons.py runs")


def pytest_ignore_collect(collection_path, config):
    return True if config.getoption("controller_only") and pythons.runs(collection_path) else None


def pytest_configure(config):
    config.addinivalue_line("markers", "root: only root can run it")
