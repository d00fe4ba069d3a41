# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each key of a service, its servers and its check changes what an engine does, or the engine refuses it."""

from __future__ import annotations

import ast

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config, settings
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, services, tls
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.certificates import certificate_text
from support.paths import MODULES
from support.plans import pairs
from support.rendering import haproxy

SERVER = {"name": "one", "address": "192.0.2.31"}
SERVICE = {"name": "web", "port": 80, "servers": [SERVER, "192.0.2.32"]}
CHECK = {"type": "https", "host": "a.example", "interval": 1}
VERIFIED = {"verify": True}
# A value other than the default's for each key, or several that go together.
OF_SERVICE = {
    "name": "other",
    "bind": ["192.0.2.99"],
    "port": 81,
    "mode": "http",
    "balance": "source",
    "servers": ["192.0.2.33"],
    "check": {"check": {"type": "http"}},
    "maxconn": 300,
    "send_proxy": True,
    "allow": ["192.0.2.0/24"],
    "tls": {"tls": {"certificate": "/etc/web.pem"}},
    "routes": {"mode": "http", "routes": [{"name": "api", "paths": ["/api"], "servers": ["192.0.2.34"]}]},
    "bind_options": ["tfo"],
    "accept_proxy": ["192.0.2.128/25"],
    "sticky": {"sticky": {"by": "source"}},
    "rate_limit": {"rate_limit": {"connections": 100}},
    "backend": {"servers": [], "backend": "another"},
    "frontend_name": "web-in",
    "frontend_lines": ["option forwardfor"],
    "backend_lines": ["retries 7"],
    "return": {"mode": "http", "servers": [], "return": {"status": 503}},
}
OF_SERVER = {
    "name": "two",
    "address": "192.0.2.41",
    "port": 9443,
    "weight": 7,
    "backup": True,
    "maxconn": 9,
    "options": ["send-proxy"],
}
OF_CHECK = {
    "type": {"type": "tcp", "host": ""},
    "path": "/up",
    "method": "HEAD",
    "host": "b.example",
    "sni": "c.example",
    "status": [204],
    "user": {"type": "mysql", "host": "", "user": "probe"},
    "verify": VERIFIED,
    "ca": {**VERIFIED, "ca": "/etc/ca.pem"},
    "port": 9000,
    "interval": 3,
    "fast_interval": 30,
    "fall": 9,
    "rise": 9,
    "slow_start": 9,
    "shutdown_sessions": True,
    "tcp_user_timeout": 9,
    "steps": [{"port": 7443}],
    "agent": {"agent": {"port": 9999}},
}


OF_TLS = {
    "certificate": ["/etc/web.pem", "/etc/other.pem"],
    "content": {"certificate": None, "content": certificate_text()},
    "strict_sni": True,
    "ca": "/etc/ca.pem",
    "verify": {"ca": "/etc/ca.pem", "verify": "optional"},
    "crl": {"ca": "/etc/ca.pem", "crl": "/etc/crl.pem"},
    "alpn": ["h2"],
    "profile": "modern",
    "min_version": "TLSv1.3",
    "ciphers": "HIGH",
    "ciphersuites": "TLS_AES_128_GCM_SHA256",
    "redirect": 80,
}
SECURE = {**SERVICE, "port": 443, "tls": {"certificate": "/etc/web.pem"}}

OTHERS = {"service": OF_SERVICE, "server": OF_SERVER, "check": OF_CHECK, "tls": OF_TLS}
KEYS = [
    *(("service", key) for key in services.SERVICE),
    *(("server", key) for key in services.SERVER),
    *(("check", key) for key in services.CHECK),
    *(("tls", key) for key in tls.TLS if key != "key"),  # which says what HAProxy does anyway
]


def before(part):
    return {"check": {**SERVICE, "check": CHECK}, "tls": SECURE}.get(part, SERVICE)


def changed(part, key):
    """Return the service with another value for one key of it, of its first server or of its check."""
    given = OTHERS[part][key]
    other = given if isinstance(given, dict) else {key: given}
    if part == "service":
        return {**SERVICE, **other}
    if part == "server":
        return {**SERVICE, "servers": [{**SERVER, **other}, "192.0.2.32"]}
    if part == "tls":
        return {**SECURE, "tls": {**SECURE["tls"], **other}}
    return {**SERVICE, "check": {**CHECK, **other}}


def of_haproxy(service):
    return [], haproxy([service, {**SERVICE, "name": "another", "port": 90}])


def of_agent(service):
    found = agent.translate({"services": [service]})
    return found["faults"], found["proxy"]


def of_direct_return(service):
    found = pair.plan(pairs.pair(services=[{**service, "plane": "direct"}]))
    return found.faults, "" if found.faults else found.members["lb1"].direct["content"]


@pytest.mark.parametrize("engine", [of_haproxy, of_agent, of_direct_return])
@pytest.mark.parametrize("part, key", KEYS, ids=[" ".join(each) for each in KEYS])
def test_no_engine_ignores_a_key(part, key, engine):
    (wrong, usual), (refused, found) = engine(before(part)), engine(changed(part, key))
    assert wrong == [] or (part == "tls" and engine is not of_haproxy)
    assert refused or found != usual


def read_by_the_balancer():
    """Return the names of all attributes that the balancer's code reads, apart from the reading of its file."""
    folder = MODULES.parent / "module_utils" / "_agent" / "proxy"
    files = [file for file in folder.rglob("*.py") if file != folder / "config.py"]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


def test_the_balancer_reads_every_setting_of_a_service():
    assert set(settings.Service._fields) <= read_by_the_balancer()
    assert {*config.SERVICE} - {"check", "routes"} <= {*settings.Service._fields}  # a route is a service, too
