# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that go to other servers by their host or path, and TLS by the name that the client asks for."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import pair

SHOP = {"name": "shop", "hosts": ["shop.example"], "servers": ["192.0.2.41"]}
WEB = {"name": "web", "port": 80, "mode": "http", "servers": ["192.0.2.31"], "routes": [SHOP]}
PLACE = "haproxy_services[0] (web).routes[0] (shop)"


def model(*services):
    settings = {"services": list(services), "monitors": [], "stats": {}, "tuning": {}}
    return haproxy.model(settings, [], "lb1")


def test_a_route_has_servers_checks_and_defaults_as_a_service_has():
    found = model(WEB)
    assert found["faults"] == []
    (route,) = found["services"][0]["routes"]
    assert (route["hosts"], route["paths"], route["balance"]) == (["shop.example"], [], "roundrobin")
    assert (route["servers"][0]["port"], route["check"]["type"], route["check"]["interval"]) == (80, "tcp", 0.2)


def test_a_service_that_is_read_again_is_the_same():
    """A layout passes the services that it has read to the role."""
    once = model({**WEB, "port": 443, "tls": {"certificate": "/etc/ssl/web.pem"}})
    assert model(*once["services"]) == once and once["faults"] == []


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"hosts": []}, f"{PLACE} has neither hosts nor paths, so that no request would take it: name some."),
        ({"hosts": ["shop.example:80"]}, f"{PLACE}.hosts is ['shop.example:80']: in it 'shop.example:80' is wrong"),
        ({"paths": ["api"]}, f"{PLACE}.paths is ['api']: in it 'api' is wrong: a URL path is required"),
        ({"paths": ["/a#b"]}, f"{PLACE}.paths is ['/a#b']: in it '/a#b' is wrong: a URL path is required"),
        ({"paths": ["/a/*"]}, f"{PLACE}.paths is ['/a/*']: in it '/a/*' is wrong: the beginning of a path is required"),
        (
            {"paths": ["/a?b=1"]},
            f"{PLACE}.paths is ['/a ...']: in it '/a ...' is wrong: the beginning of a path is required",
        ),
        ({"servers": []}, f"{PLACE}.servers is []: a list of 1 or more is required."),
        ({"balance": "x"}, f"{PLACE}.balance is 'x': roundrobin, leastconn, source, or another HAProxy algorithm"),
        ({"check": {"rise": 0}}, f"{PLACE}.check.rise is 0: a whole number from 1 to 100 is required."),
        ({"check": {"type": "https", "verify": True}}, f"{PLACE}.check.verify is true, but host is empty"),
        ({"path": "/x"}, f"{PLACE} has the unknown key 'path': did you mean 'paths'?"),
        ({"name": "web"}, "haproxy_services has the name 'web' twice: give each its own."),
        ({"servers": ["127.0.0.1"]}, f"{PLACE}.servers: 127.0.0.1 at 127.0.0.1 port 80 is the service itself"),
    ],
)
def test_a_route_that_haproxy_could_not_follow_is_refused(change, sentence):
    route = {**SHOP, **change}
    found = model({**WEB, "routes": [route]})["faults"]
    assert any(sentence.replace("(shop)", f"({route['name']})") in fault for fault in found), found


TLS = {**WEB, "port": 443, "mode": "tcp"}


def test_tls_that_is_passed_through_has_routes_by_name():
    assert model(TLS)["faults"] == []
    assert model({**TLS, "routes": [{**SHOP, "hosts": ["*.shop.example", "shop.example"]}]})["faults"] == []


@pytest.mark.parametrize(
    "service, routes, sentences",
    [
        (TLS, [{**SHOP, "paths": ["/cart"]}], [f"{PLACE}.paths need mode http: set mode to http, or leave them out."]),
        (
            {**TLS, "tls": {"certificate": "/etc/web.pem"}},
            [SHOP],
            ["haproxy_services[0] (web).routes need mode http where the service has tls: set mode to http."],
        ),
    ],
)
def test_what_tls_that_is_passed_through_does_not_show_is_refused(service, routes, sentences):
    assert model({**service, "routes": routes})["faults"] == sentences


OTHER = {"name": "other", "servers": ["192.0.2.42"]}
SECOND = "haproxy_services[0] (web).routes[1] (other)"


@pytest.mark.parametrize("service", [WEB, TLS])
@pytest.mark.parametrize(
    "first, second, taken",
    [
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "*.b.Example.com", True),
        ("*.example.com", "example.com", False),
        ("*.b.example.com", "*.example.com", False),
        ("a.example.com", "*.example.com", False),
    ],
)
def test_a_host_that_an_earlier_route_takes_is_refused(service, first, second, taken):
    found = model({**service, "routes": [{**SHOP, "hosts": [first]}, {**OTHER, "hosts": [second]}]})["faults"]
    sentence = f"{SECOND}.hosts has {second}, which {PLACE} takes first ({first}): put {SECOND} before it."
    assert found == ([sentence] if taken else [])


def test_an_earlier_route_with_paths_takes_only_these():
    routes = [{**SHOP, "hosts": ["*.example.com"], "paths": ["/cart"]}, {**OTHER, "hosts": ["a.example.com"]}]
    assert model({**WEB, "routes": routes})["faults"] == []


@pytest.mark.parametrize("host", ["*", "*.", "a.*.example.com", "*example.com", "*.*.example.com", "*.example.com:443"])
def test_a_wildcard_is_for_all_names_below_a_domain(host):
    fault = model({**WEB, "routes": [{**SHOP, "hosts": [host]}]})["faults"][0]
    assert "the name of a host, without a port, or all below one, such as *.example.com, is required." in fault


def test_a_route_to_the_balancer_itself_is_refused():
    (fault,) = _pair.plan(pair(services=[{**WEB, "routes": [{**SHOP, "servers": ["192.0.2.10"]}]}])).faults
    assert fault.startswith(
        "pair_services[0] (web).routes[0] (shop).servers: 192.0.2.10 at 192.0.2.10 port 80 is a VIP"
    )

    own = [{"address": "192.0.2.1"}]
    settings = {"services": [{**WEB, "routes": [{**SHOP, "servers": ["192.0.2.1"]}]}], "stats": {}, "tuning": {}}
    (fault,) = haproxy.model(settings, [], "lb1", own)["faults"]
    assert fault.startswith(f"{PLACE}.servers: 192.0.2.1 at 192.0.2.1 port 80 is the balancer on lb1: ")


def test_the_agent_has_routes_by_name():
    route = {**SHOP, "hosts": ["*.shop.example"], "servers": [{"name": "a", "address": "192.0.2.41"}]}
    found = agent.translate({"services": [{**TLS, "routes": [route]}]})
    assert found["faults"] == []
    (planned,) = found["proxy"]["services"][0]["routes"]
    assert (planned["name"], planned["hosts"], planned["servers"][0]["port"]) == ("shop", ["*.shop.example"], 443)


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"servers": ["app1.example.com"]}, "has the name app1.example.com, which the agent cannot resolve"),
        ({"balance": "uri"}, ".balance is uri, and the agent knows"),
        ({"backend_lines": ["option tcp-check"]}, ".backend_lines has raw lines"),
    ],
)
def test_the_agent_refuses_in_a_route_what_it_refuses_in_a_service(change, sentence):
    (fault,) = agent.translate({"services": [{**TLS, "routes": [{**SHOP, **change}]}]})["faults"]
    assert fault.startswith("agent_services (web).routes[0] (shop)") and sentence in fault


def test_the_agent_refuses_routes_of_http_in_a_sentence():
    (fault,) = agent.translate({"services": [WEB]})["faults"]
    assert fault.startswith("agent_services (web).routes are set, and the agent relays HTTP as it comes")


@pytest.mark.parametrize(
    "service, routes, key",
    [
        ({}, [{**SHOP, "hosts": ["*"]}], "routes[0] (shop).hosts"),
        ({}, [{**SHOP, "hosts": [], "paths": ["x y"]}], "routes[0] (shop).paths"),
        ({"mode": "HTTP"}, [{**SHOP, "paths": ["/cart"]}], "mode"),
        ({"tls": {"certificate": "/etc/ssl/web.pem"}, "port": 443, "mode": "HTTP"}, [SHOP], "mode"),
        ({"check": {"type": "HTTP", "path": "/x"}}, [], "check.type"),
    ],
)
def test_a_value_that_was_refused_is_not_judged_again_as_its_default(service, routes, key):
    (fault,) = model({**WEB, "routes": routes, **service})["faults"]
    assert fault.startswith(f"haproxy_services[0] (web).{key} is ")
