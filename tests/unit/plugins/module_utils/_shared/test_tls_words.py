# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a haproxy.cfg says which versions and ciphers of TLS there are."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import tls_words


@pytest.mark.parametrize(
    "line, says",
    [
        ("bind *:443 ssl crt /a.pem alpn h2", False),
        ("bind *:443 ssl crt /a.pem ssl-min-ver TLSv1.2", True),
        ("bind *:443 ssl crt /a.pem ssl-max-ver TLSv1.2", True),
        ("bind *:443 ssl crt /a.pem ciphers HIGH", True),
        ("bind *:443 ssl crt /a.pem no-tlsv12", True),
        ("bind *:443 ssl crt /a.pem force-tlsv13", True),
        ("bind *:443 ssl crt /ciphers.pem no-tls-tickets", False),
    ],
)
def test_of_a_bind_line(line, says):
    assert tls_words.are_in(line.split()) is says


@pytest.mark.parametrize(
    "line, says",
    [
        ("    ssl-default-bind-ciphers HIGH", True),
        ("ssl-default-bind-options ssl-min-ver TLSv1.2", True),
        ("ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256", True),
        ("ssl-default-server-ciphers HIGH", False),
        ("# ssl-default-bind-ciphers HIGH", False),
    ],
)
def test_of_the_section_global(line, says):
    assert tls_words.are_for_all(["maxconn 100", line]) is says
