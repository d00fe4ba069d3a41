# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The servers behind the proxy."""

from __future__ import annotations

import pytest
from support.proxy.connections import unresponsive
from support.proxy.proxies import listening


@pytest.fixture
def server():
    with listening() as server:
        yield server


@pytest.fixture
def other():
    with listening() as server:
        yield server


@pytest.fixture
def deaf():
    """The address of a server that does not answer."""
    with unresponsive() as address:
        yield address
