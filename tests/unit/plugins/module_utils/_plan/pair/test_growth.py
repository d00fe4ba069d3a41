# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan of many equal entries is as much work for each as one of few, and says as little of each."""

from __future__ import annotations

import functools

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support import growth
from support.plans import pairs

SERVER = ["192.0.2.31"]
SERVICE = {"name": "a", "port": 80, "servers": SERVER}
TLS = {"certificate": "/etc/a.pem"}
COOKIE = {"by": "cookie"}
WEB = {**SERVICE, "mode": "http", "sticky": COOKIE}
ROUTE = {"name": "r", "hosts": ["x.example"], "servers": SERVER}
GROWN = {
    "equal services": lambda number: {"services": [SERVICE] * number},
    "services at one port": lambda number: {"services": [{**SERVICE, "name": f"a{at}"} for at in range(number)]},
    "services at ports of their own": lambda number: {
        "services": [{**SERVICE, "name": f"a{at}", "port": 1000 + at} for at in range(number)]
    },
    "servers that are the balancer": lambda number: {
        "services": [{**SERVICE, "name": f"a{at}", "servers": ["127.0.0.1"]} for at in range(number)]
    },
    "equal addresses": lambda number: {"services": [{**SERVICE, "bind": ["192.0.2.10"] * number}]},
    "an address, and all of them": lambda number: {
        "services": [{**SERVICE, "name": f"a{at}", "bind": ["192.0.2.10"] if at else ["*"]} for at in range(number)]
    },
    "equal servers": lambda number: {"services": [{**SERVICE, "servers": SERVER * number}]},
    "equal routes": lambda number: {"services": [{**SERVICE, "mode": "tcp", "routes": [ROUTE] * number}]},
    "routes below one wildcard": lambda number: {
        "services": [
            {
                **WEB,
                "routes": [
                    {**ROUTE, "name": f"r{at}", "hosts": [f"r{at}.example"] if at else ["*.example"]}
                    for at in range(number)
                ],
            }
        ]
    },
    "equal cookies": lambda number: {"services": [{**WEB, "routes": [{**ROUTE, "sticky": COOKIE}] * number}]},
    "equal raw lines": lambda number: {"services": [{**SERVICE, "frontend_lines": ["bind 192.0.2.10:81"] * number}]},
    "equal VIPs": lambda number: {"vips": ["192.0.2.10"] * number},
    "equal checks": lambda number: {"checks": [{"gateway": "192.0.2.1"}] * number},
    "equal certificates": lambda number: {
        "services": [{**WEB, "tls": {**TLS, "certificate": ["/etc/a.pem"] * number}}]
    },
}


@pytest.mark.parametrize("kind", GROWN)
def test_work_and_sentences_grow_with_their_number_alone(kind):
    growth.check(lambda number: functools.partial(pair.plan, pairs.pair(**GROWN[kind](number))))
