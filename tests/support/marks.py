# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks for tests that need certain rights."""

from __future__ import annotations

import os

import pytest


def as_root(test):
    """Mark a test that only root can run. `pytest -m root` selects the tests that an ordinary user has to skip."""
    return pytest.mark.root(pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")(test))
