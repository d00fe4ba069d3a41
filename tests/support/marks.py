# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What some tests need of the machine or of the user who runs them."""

from __future__ import annotations

import os

import pytest


def as_root(test):
    """Mark a test that only root can run, so that `pytest -m root` finds those that a plain user's run has left out."""
    return pytest.mark.root(pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")(test))
