# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A loop, a folder for other users, and nothing left open, for each test that asks for it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import request_server
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.loops import LIMIT


@pytest.fixture
def loop():
    found = Loop()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def patience_with_clients(monkeypatch):
    """A client that a busy machine stops for seconds is not dropped."""
    monkeypatch.setattr(request_server, "CLIENT_TIMEOUT", LIMIT // 2)


@pytest.fixture
def open_folder():
    """A folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def no_leak():
    """No descriptor is open afterwards that was not before."""
    before = set(os.listdir("/proc/self/fd"))
    yield
    assert set(os.listdir("/proc/self/fd")) <= before
