# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all unit tests need before they are imported."""

from __future__ import annotations

from hypothesis import settings
from support import collection, leaks
from support.scope import SCOPE

# How many examples each property is tried with. "each line" is for Pythons under which it is enough that each line
# runs; see tests/pythons.py.
settings.register_profile("each line", max_examples=20)
settings.register_profile("quick", max_examples=50)
settings.register_profile("full", max_examples=200)
settings.load_profile(SCOPE)

collection.make_importable()
nothing_is_left = leaks.nothing_is_left


def pytest_configure(config):
    config.addinivalue_line("markers", "root: only root can run it")
