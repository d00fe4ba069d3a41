# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two servers, and a proxy that is started in front of them and stopped at the end."""

from __future__ import annotations

import contextlib

import pytest
from support.agent.programs import PATIENT
from support.ports import free_ports
from support.proxy.masters import Echo, Running


@pytest.fixture
def echoes():
    """Two servers, called a and b."""
    with Echo("a") as a, Echo("b") as b:
        yield {"a": a, "b": b}


@pytest.fixture
def port():
    return free_ports(1)[0]


@pytest.fixture
def start(tmp_path):
    """Start a proxy with some services and other things; it is stopped at the end."""
    with contextlib.ExitStack() as stack:

        def begin(*services, environ=None, program=PATIENT, **whole):
            configuration = {"services": list(services), **whole}
            return stack.enter_context(Running(tmp_path, configuration, environ=environ, program=program))

        yield begin
