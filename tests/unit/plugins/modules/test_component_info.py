# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module component_info: what is asked of it and said by it.

What it finds: test_server of _host.direct, and test_resolver.
"""

from __future__ import annotations

import errno

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.direct import host, wanted
from ansible_collections.onprem.lb.plugins.module_utils._host.read import bgp, resolver
from ansible_collections.onprem.lb.plugins.modules import component_info
from support.modules import refusal, run

ANSWER = {"name": "api.lab.example.com", "addresses": ["192.0.2.10"]}
SERVER = {"direct_server": {"interface": "", "services": []}}


@pytest.fixture(autouse=True)
def read(monkeypatch):
    monkeypatch.setattr(host, "read", lambda _reader: host.Host())
    monkeypatch.setattr(resolver, "read", lambda _reader, looks_up: {"resolved": looks_up})
    monkeypatch.setattr(resolver, "not_forwarded", lambda _server, upstreams: [f"not to {each}" for each in upstreams])
    monkeypatch.setattr(resolver, "worse", lambda _reader, before, own: [f"{before} {own}"])
    monkeypatch.setattr(resolver, "wrong_answers", lambda server, wanted: [f"{server}: {each}" for each in wanted])


@pytest.mark.parametrize("check", [True, False])
def test_it_asks_a_resolver_or_reads_the_host_in_either_mode(check):
    asked = {"server": "192.0.2.1", "answers": [ANSWER], "upstreams": ["192.0.2.9"]}
    found = run(component_info, {"resolver": asked}, check=check)
    assert (found["changed"], found["wrong"]) == (False, [f"192.0.2.1: {ANSWER}", "not to 192.0.2.9"])
    assert run(component_info, {"resolver": {"looks_up": True}}, check=check)["resolved"] is True
    before = {"a.example": ["192.0.2.7"]}
    worse = run(component_info, {"resolver": {"before": before, "answers": [ANSWER, ANSWER]}}, check=check)
    assert worse["wrong"] == [f"{before} {[ANSWER]}"]


def test_an_answer_needs_its_addresses():
    assert "missing required arguments: addresses" in refusal(
        component_info, {"resolver": {"answers": [{"name": "api"}]}}
    )


@pytest.mark.parametrize("check", [True, False])
def test_it_returns_what_it_finds_of_a_direct_server_in_either_mode(monkeypatch, check):
    monkeypatch.setattr(wanted, "of_server", lambda given, _host: wanted.Found([f"{given} is wrong."]))
    found = run(component_info, SERVER, check=check)
    assert found["faults"] == ["{'interface': '', 'services': []} is wrong."]
    assert (found["changed"], found["config"], found["differences"]) == (False, "", [])


@pytest.mark.parametrize("check", [True, False])
def test_it_returns_the_sessions_of_frr_or_why_there_is_no_answer(monkeypatch, check):
    session = bgp.Session("192.0.2.1", 64601, "ipv4", "Established", 1.0, 1, 0, 1, 0, "up")
    monkeypatch.setattr(bgp, "sessions", lambda _reader: [session])
    monkeypatch.setattr(bgp, "running_config", lambda _reader: "router ospf\n")
    found = run(component_info, {"frr": {"config_path": "/nowhere"}}, check=check)
    assert (found["sessions"], found["no_answer"], len(found["unsaved"])) == ([session._asdict()], "", 1)

    def silent(_reader):
        raise bgp.NoAnswer("FRR is not installed.")

    monkeypatch.setattr(bgp, "sessions", silent)
    found = run(component_info, {"frr": {}}, check=check)
    assert (found["sessions"], found["no_answer"], found["unsaved"]) == ([], "FRR is not installed.", [])


def test_a_missing_privilege_is_a_sentence(monkeypatch):
    def denied(*_asked):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(wanted, "of_server", denied)
    said = refusal(component_info, SERVER)
    assert said == "The network of this host cannot be read: Operation not permitted. Use become."


@pytest.mark.parametrize("asked", [{}, {**SERVER, "resolver": {}}])
def test_it_reads_for_one_component_at_a_time(asked):
    assert refusal(component_info, asked)
