# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A service with the servers of another one: what is refused, and what takes the place of its servers."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import servers as forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, destinations, haproxy, loops
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans import pairs
from support.rendering import haproxy as render

WEB = {"name": "web", "port": 443, "servers": ["192.0.2.31", "192.0.2.32"]}
ALSO = {"name": "also", "port": 8443, "backend": "web"}
PLACE = "haproxy_services[0] (also)"


def faults(*services):
    return read_services(list(services), "haproxy_services")[1]


def sections(text):
    """Return each section of haproxy.cfg with its lines."""
    found = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.lstrip().startswith("#")]
        found.update({lines[0]: lines[1:]} if lines else {})
    return found


@pytest.mark.parametrize("services", [(WEB, ALSO), (ALSO, WEB)], ids=["behind it", "before it"])
def test_haproxy_has_a_frontend_of_its_own_and_one_backend(services):
    found = sections(render(list(services)))
    assert "frontend also" in found and "backend also" not in found
    assert found["frontend also"][-1].split() == ["default_backend", "web"]
    assert found["frontend also"][-2].split()[:5] == ["use_backend", "web-fallback", "if", "{", "nbsrv(web)"]
    assert sum(line.startswith("    server ") for line in found["backend web"]) == 2


SECURE = {**WEB, "mode": "http", "tls": {"certificate": "/etc/web.pem"}, "sticky": {"by": "cookie"}}
REFUSED = {
    "nobody": ({"backend": "no"}, "backend is no, and there is no such service: known are also, web."),
    "itself": ({"backend": "also"}, "backend is also, which is this service itself: name another one, or give it"),
    "another mode": ({"mode": "http"}, "backend is web, whose mode is tcp: set mode to that, or give it servers."),
    "servers": ({"servers": ["192.0.2.33"]}, "has servers and backend, which is a service with others: leave one"),
    "a balance": ({"balance": "source"}, "balance is for servers of its own, and backend is a service that has"),
    "a check": ({"check": {"fall": 9}}, "check is for servers of its own"),
    "the header": ({"send_proxy": True}, "send_proxy is for servers of its own"),
    "stickiness": ({"sticky": {"by": "source"}}, "sticky is for servers of its own"),
    "raw lines": ({"backend_lines": ["retries 2"]}, "backend_lines is for servers of its own"),
    "an answer": ({"mode": "http", "return": {"status": 503}}, "return is for servers of its own"),
    "a list": ({"backend": ["web"]}, "backend is"),
    "a mapping": ({"backend": {"web": 1}}, "backend is"),
    "a number": ({"backend": 1}, "backend is"),
    "two words": ({"backend": "web two"}, "backend is"),
    "a line break": ({"backend": "web\n"}, "backend is"),
    "a comment": ({"backend": "web#"}, "backend is"),
}


@pytest.mark.parametrize("changes, fault", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(changes, fault):
    other = {**WEB, "mode": "http"} if "return" in changes else WEB
    (found,) = [each for each in faults({**ALSO, **changes}, other) if PLACE in each]
    assert fault in found


def test_of_two_that_name_each_other_each_is_told():
    first, second = faults(ALSO, {**WEB, "servers": [], "backend": "also"})
    assert first.endswith("backend is web, which has no servers of its own: name one that has.")
    assert "backend is also, which has no servers" in second


def test_a_cookie_of_tls_needs_tls_on_both():
    plain = {**ALSO, "mode": "http"}
    assert "whose cookie is for TLS alone" in faults(plain, SECURE)[0]
    assert faults({**plain, "tls": {"certificate": "/etc/web.pem"}}, SECURE) == []


def test_null_and_nothing_are_no_backend():
    for nothing in (None, ""):
        assert faults({**WEB, "backend": nothing}) == []


def test_the_agent_refuses_it_and_names_the_other_engine():
    (found,) = agent.translate({"services": [WEB, ALSO]})["faults"]
    assert found.startswith("agent_services (also).backend is set, and the agent checks servers for each service: ")
    assert found.endswith("name them, or use HAProxy.")


def test_a_monitor_counts_the_servers_of_the_other_one():
    monitor = {"port": 9000, "path": "/", "at_least": {"also": 1}}
    settings = haproxy.settings_of({"services": [WEB, ALSO], "monitors": [monitor]})
    assert any(
        fault.endswith("requires servers of also, which are those of web: name that.")
        for fault in haproxy.model(settings, [], "")["faults"]
    )


def planned(**settings):
    return pair.plan(pairs.pair(engine="native", **settings))


def test_the_forecast_says_of_both_what_becomes_of_their_connections():
    plan = planned(services=[WEB, ALSO])
    assert plan.faults == []
    assert any(line.startswith("web, also: 2 servers") for line in plan.table)
    assert plan.targets == [["192.0.2.10", 443], ["192.0.2.10", 8443]]
    assert plan.members["lb1"].firewall.ports == [443, 8443]


def test_servers_that_lead_to_another_port_of_the_pair_are_found_by_either_port():
    """A client that comes in by the second port goes round as well."""
    round_trip = planned(services=[{**WEB, "servers": [{"address": "192.0.2.2", "port": 8443}]}, ALSO]).faults
    assert any("192.0.2.2" in fault and "balancer" in fault for fault in round_trip)


def test_the_servers_get_what_comes_in_at_either_port():
    """By these a loop over two pairs is found."""
    services, _wrong = read_services([WEB, ALSO], "pair_services")
    known = loops.of_host(["192.0.2.10"], [], "lb1", {})
    found = {(each.address, *each.reached) for each in destinations.of_services(services, "pair_services", known)}
    assert found == {(f"192.0.2.{at}", ("192.0.2.10", port)) for at in (31, 32) for port in (443, 8443)}


def test_what_follows_the_cluster_is_the_other_one():
    follow = {"follow": True, "follow_kubeconfig": "/etc/k", "follow_services": ["also"]}
    found = planned(services=[WEB, ALSO], **follow).faults
    assert "pair_follow_services names also, whose servers are those of web: name that." in found


def test_direct_return_needs_servers():
    assert planned(services=[WEB, {**ALSO, "plane": "direct"}]).faults != []


def test_lines_of_the_table_are_as_before_without_any():
    services, _wrong = read_services([WEB, {**WEB, "name": "two", "port": 444}], "")
    (first, *_rest) = forecast.table(services, {"native": forecast.Timeouts()})
    assert first.startswith("web, two: 2 servers")
