# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the probe asks of each kind of service, and what it makes of the answers."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import questions
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi.presets import PRESETS
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair.presets import PRESETS as PAIR_PRESETS
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, events
from support.plans.clusters import BOOTSTRAP, cluster
from support.plans.pairs import pair

VIP = "192.0.2.10"
SERVERS = [{"name": "one", "address": "192.0.2.21"}]
ENGINES = (engines.NATIVE, engines.AGENT)
both_engines = pytest.mark.parametrize("engine", ENGINES)


def planned(layout, members):
    plan = planner.draft(layout, members)
    assert plan.faults == []
    return as_data(plan)


def asked(send="", engine=engines.NATIVE, **settings):
    """Return what the probe of a pair may ask, in words."""
    plan = planned(_pair.LAYOUT, pair(engine=engine, **settings))
    return [each["words"] for each in questions.questions([plan], send)]


def of_services(*given, engine=engines.NATIVE, **settings):
    services = [{"name": f"service-{at}", "servers": SERVERS, **each} for at, each in enumerate(given)]
    return asked(services=services, masters=[], infra_nodes=[], engine=engine, **settings)


def one(service, vips=(VIP,), engine=engines.NATIVE):
    """Return the first question for a service."""
    services = [{"name": "one", "servers": SERVERS, "port": 5000, **service}]
    members = pair(services=services, masters=[], infra_nodes=[], vips=list(vips), engine=engine)
    return questions.questions([planned(_pair.LAYOUT, members)])[0]


@pytest.mark.parametrize("send, asked_at", [("", 80), ("who?", 80)])
@pytest.mark.parametrize("plane, lasting_at", [("proxy", 80), ("direct", 6000), ("draining", 80)])
def test_connections_that_last_are_those_of_direct_return_whatever_the_probe_asks(plane, lasting_at, send, asked_at):
    services = [
        {"name": "web", "port": 80, "mode": "http", "servers": SERVERS},
        {"name": "api", "port": 6000, "plane": plane, "servers": ["192.0.2.21", "192.0.2.22"]},
    ]
    plan = planned(_pair.LAYOUT, pair(services=services, masters=[], infra_nodes=[], vips=[VIP]))
    found = questions.questions([plan], send)[0]
    assert (found["port"], found["lasting_port"]) == (asked_at, lasting_at)
    tried = {"item": found, "tried": 10, "failed_attempts": 10, "failures": {}}
    round_ = questions.ask([{"vip": VIP, "event": events.HAPROXY_KILLED}], [tried])[0]
    assert round_["question"]["lasting_port"] == lasting_at, "also where nothing was answered"


CHECKS = {
    "tcp": {},
    "none": {"type": "none"},
    "http": {"type": "http"},
    "https": {"type": "https"},
    "elsewhere": {"type": "http", "port": 1936},
    "a step": {"type": "https", "steps": [{"port": 6444}, {"type": "http", "path": "/ready"}]},
    "a step elsewhere": {"type": "https", "steps": [{"port": 6444}, {"type": "tcp"}]},
}
SPOKEN = {"http": "HTTP", "https": "TLS", "a step": "HTTP"}


@both_engines
@pytest.mark.parametrize("mode", ["tcp", "http"])
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("port, usual", [(5000, []), (80, ["HTTP"]), (443, ["TLS", "HTTP"]), (6443, ["TLS", "HTTP"])])
def test_the_probe_asks_as_clients_do_where_the_service_says_it_and_else_by_the_port(engine, mode, check, port, usual):
    told = "HTTP" if mode == "http" else SPOKEN.get(check)
    expected = [f"{each} at {port}" for each in ([told] if told else usual)] or ["connects only"]
    assert of_services({"port": port, "mode": mode, "check": CHECKS[check]}, engine=engine) == expected


@both_engines
@pytest.mark.parametrize("preset", PAIR_PRESETS)
def test_a_drill_of_each_preset_gets_answers(engine, preset):
    networks = {"machine_networks": ["192.0.2.0/24"]} if preset.startswith("openshift") else {}
    port = PAIR_PRESETS[preset].fronts[0].port
    wanted = [f"TLS at {port}"] if preset != "okd3" else ["TLS at 8443", "HTTP at 8443"]
    assert asked(preset=preset, engine=engine, **networks) == wanted


@both_engines
@pytest.mark.parametrize("preset", PRESETS)
def test_a_drill_of_a_cluster_asks_the_api_with_tls_and_the_router_with_http(engine, preset):
    plan = planned(_ipi.LAYOUT, cluster(preset=preset, engine=engine))
    found = [(each["vip"], each["words"]) for each in questions.questions([plan])]
    assert found == [("10.0.0.200", "TLS at 6443"), ("10.0.0.201", "HTTP at 80")]


def test_the_machine_config_server_of_a_bootstrap_is_not_asked_while_the_api_can_be():
    masters = ["master-0", "master-1", *BOOTSTRAP]
    settings = {"masters": masters, "bootstrap": "bootstrap-0", "machine_networks": ["10.0.0.0/24"]}
    plan = planned(_ipi.LAYOUT, cluster(*masters, **settings))
    assert ["10.0.0.200", 22623] in plan["targets"]
    assert [each["port"] for each in questions.questions([plan]) if each["vip"] == "10.0.0.200"] == [6443]


def test_what_says_how_it_is_asked_goes_before_what_only_has_a_usual_port_and_who_is_let_in_before_both():
    restricted = {"port": 7000, "mode": "http", "allow": ["198.51.100.0/24"]}
    usual, unknown, known = {"port": 443}, {"port": 5000}, {"port": 6000, "mode": "http"}
    assert of_services(unknown, usual, restricted, known) == ["HTTP at 6000"]
    assert of_services(unknown, usual, restricted) == ["TLS at 443", "HTTP at 443"]
    assert of_services(unknown, restricted) == ["HTTP at 7000"]
    assert of_services(unknown) == ["connects only"]
    limited = {"port": 80, "mode": "http", "rate_limit": {"requests": 9}}
    assert of_services(limited, usual) == ["TLS at 443", "HTTP at 443"]
    assert of_services(limited, unknown) == ["connects only"]
    assert of_services(limited) == ["HTTP at 80"]


def test_clients_of_a_balancer_that_ends_tls_speak_tls_and_are_redirected_in_http():
    tls = {"mode": "http", "tls": {"certificate": "/etc/pem", "redirect": 81}, "check": {"type": "http"}}
    plan = planned(
        _pair.LAYOUT,
        pair(services=[{"name": "web", "port": 443, "servers": SERVERS, **tls}], masters=[], infra_nodes=[]),
    )
    assert [each["words"] for each in questions.questions([plan])] == ["TLS at 443"]
    plan["targets"] = [[VIP, 81]]
    assert [each["words"] for each in questions.questions([plan])] == ["HTTP at 81"]


@both_engines
def test_clients_that_choose_a_route_by_the_name_in_tls_speak_tls(engine):
    route = {"name": "shard", "hosts": ["*.shard.example"], "servers": ["192.0.2.41"]}
    for check in ({}, {"type": "http", "port": 1936}, {"type": "http"}):
        assert of_services({"port": 5000, "check": check, "routes": [route]}, engine=engine) == ["TLS at 5000"]


def test_clients_of_a_balancer_that_begins_tls_itself_do_not():
    begun = [{**SERVERS[0], "options": ["ssl verify none"]}]
    assert of_services({"port": 5000, "check": {"type": "https"}, "servers": begun}) == ["HTTP at 5000"]


@pytest.mark.parametrize("vip, host", [(VIP, VIP), ("2001:db8::10", "[2001:db8::10]")])
def test_a_request_is_whole_and_asks_what_the_check_asks(vip, host):
    assert one({"mode": "http"}, [vip])["send"].startswith(f"GET / HTTP/1.1\r\nHost: {host}\r\n")
    check = {"type": "http", "path": "/ready", "host": "web.example"}
    sent = one({"check": check}, [vip])["send"]
    assert sent.startswith("GET /ready HTTP/1.1\r\nHost: web.example\r\n") and sent.endswith("\r\n\r\n")


def test_a_client_hello_names_the_server_as_the_check_does():
    for names, expected in (({}, ""), ({"host": "a.example"}, "a.example"), ({"sni": "b.example"}, "b.example")):
        found = one({"check": {"type": "https", **names}})
        assert (found["tls"], found["send"], found["server_name"]) == (True, "", expected)


def test_the_query_of_a_path_may_be_a_secret_and_is_not_sent():
    assert "s3cret" not in one({"check": {"type": "http", "path": "/health?token=s3cret"}})["send"]


@both_engines
def test_what_the_user_sends_goes_before_everything_at_the_first_port(engine):
    assert asked(send="PING\r\n", engine=engine) == ["drill_send"]


def tried(words, tried=10, failed=0, tls=True, **failures):
    question = questions.Question(VIP, 443, words, tls=tls)
    return {"item": question._asdict(), "tried": tried, "failed_attempts": failed, "failures": failures}


def chosen(*results, event=events.HAPROXY_HUNG):
    (found,) = questions.ask([{"vip": VIP, "event": event}], results)
    return found


def test_the_first_question_that_is_answered_is_asked():
    found = chosen(tried("TLS", failed=10), tried("HTTP", failed=9), tried("no more"))
    assert (found["question"]["words"], found["measured"]) == ("HTTP", True)


@pytest.mark.parametrize("event", events.EVENTS)
@pytest.mark.parametrize("nothing", [[tried("TLS", failed=10, timeout=10), tried("HTTP", failed=10)], "unknown"])
def test_without_an_answer_the_probe_connects_only_and_says_what_that_does_not_measure(nothing, event):
    unknown = [tried("connects only", tls=False)]
    found = chosen(*(unknown if nothing == "unknown" else nothing), event=event)
    words = "connects only" if nothing == "unknown" else "connects only: no answer to TLS"
    assert found["question"]["words"] == words and not (found["question"]["tls"] or found["question"]["send"])
    assert found["measured"] == (event not in ("haproxy_hung", "slow_backend", *events.ON_SERVER))


def test_a_service_whose_balancer_says_that_it_has_no_server_is_asked_for_any_answer():
    found = chosen(tried("HTTP", failed=10, unavailable=10))["question"]
    assert (found["words"], found["tls"], found["gateway_errors_fail"]) == ("HTTP, any status", True, False)
    assert chosen(tried("HTTP", failed=3, unavailable=3))["question"]["gateway_errors_fail"]


@pytest.mark.parametrize(
    "given, sent",
    [
        ("GET / HTTP/1.0\nHost: a\n", "GET / HTTP/1.0\r\nHost: a\r\n\r\n"),  # \r\n\r\n at its end, after a template
        ("GET / HTTP/1.0", "GET / HTTP/1.0\r\n\r\n"),
        ("GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\n\r\n"),
        ("POST /a HTTP/1.1\nHost: a\n\n1\n\n2\n", "POST /a HTTP/1.1\r\nHost: a\r\n\r\n1\n\n2\n"),
        ("PING\n", "PING\n"),
    ],
)
def test_a_request_of_http_that_the_user_sends_is_a_whole_one(given, sent):
    plan = planned(_pair.LAYOUT, pair(vips=[VIP]))
    assert [questions.sent(each, given) for each in questions.questions([plan], given)] == [sent]


def test_what_the_user_sends_is_asked_also_when_nothing_comes_back():
    assert chosen(tried("drill_send", failed=10))["question"]["words"] == "drill_send"
