# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host for each test of the keeper."""

from __future__ import annotations

import pytest
from support.anycast.hosts import Host


@pytest.fixture
def host(tmp_path):
    found = Host(tmp_path)
    yield found
    found.keeper.held_back.use(())
