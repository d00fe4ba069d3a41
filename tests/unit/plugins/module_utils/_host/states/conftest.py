# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member whose files are in a temporary folder, and whose systemd is a table."""

from __future__ import annotations

import pytest
from support.states import Systemd


@pytest.fixture
def systemd():
    return Systemd()
