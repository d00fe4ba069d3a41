# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in API server with certificates, and a client of it, for each test that asks for them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import Api
from support.agent.certificates import Certificate
from support.agent.loops import LIMIT
from support.follow.api_server import TOKEN, ApiServer


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("api"), "IP:127.0.0.1,DNS:api.example")


@pytest.fixture(scope="session")
def clients(tmp_path_factory):
    """The certificate of a client."""
    return Certificate(tmp_path_factory.mktemp("client"), "DNS:client.example", "client.example")


@pytest.fixture
def server(certificate, clients):
    with ApiServer(certificate, clients) as found:
        yield found


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture
def api(server, certificate, token):
    """How to reach the stand-in."""
    return Api((server.url,), ca=certificate.file, token=str(token), timeout=LIMIT)
