# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which frontends end TLS with HAProxy's own versions and ciphers."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import unrestricted_tls

CONFIG = """global
    {of_all}
frontend www
    bind *:443 ssl crt /a.pem
    bind :::443 v6only ssl crt /a.pem
frontend plain
    bind *:80
listen shop
    bind *:8443 ssl crt /a.pem ciphers HIGH
listen api
    bind *:9443 ssl crt /a.pem alpn h2
backend www
    server ssl 192.0.2.31:443 ssl verify none
"""


@pytest.mark.parametrize("of_all, found", [("maxconn 9", ["www", "api"]), ("ssl-default-bind-ciphers HIGH", [])])
def test_those_of_which_no_line_says_anything(of_all, found):
    assert unrestricted_tls.of_text(CONFIG.format(of_all=of_all)) == found
