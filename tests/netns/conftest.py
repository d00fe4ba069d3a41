# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link of its own for each test that asks for one."""

from __future__ import annotations

import pytest
from support import collection, leaks
from support.netns.links import lent

collection.make_importable()
nothing_is_left = leaks.nothing_is_left


@pytest.fixture
def link():
    with lent() as made:
        yield made


@pytest.fixture
def stage(link, tmp_path):
    """That link with agents on it, and a record of what they do."""
    from support.netns.stages import Stage

    made = Stage(link, tmp_path)
    try:
        yield made
    finally:
        made.close()
