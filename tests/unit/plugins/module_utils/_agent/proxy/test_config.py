# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy makes of its configuration: all of it, or none and every fault."""

from __future__ import annotations

import json
import ssl

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import host
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config, settings
from hypothesis import given
from hypothesis import strategies as st
from support.proxy.configs import DNS, GOOD, WEB, with_check, with_monitor, with_server, with_service, written

SECOND = 1_000_000


def faults_of(text, of=None):
    found, faults = config.parse(text, host=of)
    assert (found is None) == bool(faults)
    return faults


def test_a_good_configuration_is_read_in_microseconds():
    found, faults = config.parse(written())
    assert faults == []
    web, dns = found.services
    assert web == settings.Service(
        name="web",
        bind=("*", "::"),
        port=443,
        servers=(
            settings.Server("192.0.2.1", "192.0.2.1", 443),
            settings.Server("b", "2001:db8::2", 8443, weight=5, backup=True, maxconn=40),
        ),
        balance="leastconn",
        health=settings.Health(
            type="https",
            port=9000,
            path="/readyz",
            host="api.example.org",
            sni="sni.example.org",
            status=("200-299",),
            interval=3 * SECOND,
            fast_interval=SECOND // 2,
            timeout=SECOND * 3 // 2,
            late_timeout=10 * SECOND,
            rise=3,
            fall=2,
            verify=True,
            shutdown_sessions=True,
            slow_start=60 * SECOND,
            tcp_user_timeout=SECOND * 5 // 2,
        ),
        maxconn=500,
        send_proxy=True,
    )
    assert dns == settings.Service("dns", ("192.0.2.10",), 53, (settings.Server("a", "192.0.2.1", 53),))
    assert found.monitors == (
        settings.Monitor("alive", ("127.0.0.1",), 9444),
        settings.Monitor(
            "web", ("127.0.0.1",), 9444, "/web", (settings.Condition("web", 1), settings.Condition("dns", 1))
        ),
    )
    assert found.timeouts == settings.Timeouts(client=60 * SECOND, tunnel=7200 * SECOND, queue=30 * SECOND)
    own, _faults = config.parse(written(timeouts={"connect": 1.05}))
    assert {service.health.late_connect for service in own.services} == {own.timeouts.connect} == {1_050_000}
    assert found.page == settings.Page(("192.0.2.10",), 9000)
    assert found[3:9] == (4000, 5, 2, 90_500_000, 2_500_000, "/run/proxy.sock")


def test_what_the_settings_default_to_is_what_the_file_defaults_to():
    bare = {"name": "web", "port": 80, "servers": [{"address": "192.0.2.1"}]}
    found, _faults = config.parse(json.dumps({"services": [bare], "monitors": [{"name": "m", "port": 1}]}))
    for item in (found, found.services[0], found.services[0].servers[0], found.monitors[0]):
        for key, default in item._field_defaults.items():
            if key not in ("monitors",):
                assert getattr(item, key) == default, key
    assert found.services[0].bind == ("*",) and found.monitors[0].bind == ("*",)


def test_the_keys_are_those_of_the_collections_model():
    from ansible_collections.onprem.lb.plugins.module_utils._plan.model import pace, services

    own_to_haproxy = {"tls", "routes", "frontend_name", "frontend_lines", "backend_lines", "return", "agent"}
    own_to_haproxy |= {"bind_options", "accept_proxy", "sticky", "rate_limit", "backend"}
    for schema, model in (
        (config.SERVICE, services.SERVICE),
        (config.CHECK, services.CHECK),
    ):
        assert model.keys() - own_to_haproxy <= schema.keys()
        for key in model.keys() - own_to_haproxy - pace.FORMER.keys():
            assert (schema[key].default, schema[key].required) == (model[key].default, model[key].required), key


ROUTE = {"name": "shard", "hosts": ["*.shard.example"], "servers": ["192.0.2.9"]}


def with_route(**changes):
    return with_service(routes=[{**ROUTE, **changes}])


@pytest.mark.parametrize(
    "servers, said",
    [
        (None, " lacks 'servers': add it."),
        ([], ".servers is []: a list of 1 or more is required."),
        ("192.0.2.1", '.servers is \'192.0.2.1\': a list is required, such as ["a", "b"].'),
    ],
)
def test_servers_that_are_missing_are_one_fault(servers, said):
    assert config.parse(with_service(servers=servers))[1] == [f"services[0] (dns){said}"]
    assert config.parse(with_route(servers=servers))[1] == [f"services[0] (dns).routes[0] (shard){said}"]


def test_a_route_is_a_service_that_listens_nowhere():
    found, faults = config.parse(with_route(balance="source"))
    assert faults == []
    (own, route) = found.services
    assert (route.name, route.route_of, route.hosts, route.bind) == ("shard", own.name, ("*.shard.example",), ())
    assert (route.balance, route.servers[0].port, own.balance) == ("source", own.port, "roundrobin")


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("{", "configuration is not JSON: "),
        ("[]", "configuration is []: a mapping with the keys services, "),
        ('{"services": [], "services": []}', "configuration has the key 'services' more than once: leave one out."),
        ("{}", "configuration lacks 'services': add it."),
        (written(servics=[]), "configuration has the unknown key 'servics': did you mean 'services'?"),
        (written(services=[DNS, {**DNS, "port": 54}], monitors=[]), "services has the name 'dns' twice: "),
        (written(maxconn=0), "configuration.maxconn is 0: "),
        (written(workers=65), "configuration.workers is 65: a whole number from 1 to 64 is required."),
        (written(status_socket="/x" * 60), "the path of a socket has at most 107 bytes."),
        (written(timeouts={"clinet": 1}), "timeouts has the unknown key 'clinet': did you mean 'client'?"),
        (written(timeouts={"connect": 0}), "timeouts.connect is 0: a number from 0.001 to 604800 seconds"),
        (written(page={}), "page lacks 'port': add it."),
        (with_check(late_timeout=2), ".check.late_timeout is 2 and timeout 2, after which no answer is late"),
        (with_service(prot=1), "services[0] (dns) has the unknown key 'prot': did you mean 'port'?"),
        (with_service(name="a/b"), "services[0].name is 'a/b': a name of letters, digits and . : _ - is required."),
        (with_service(name="x" * 257), "a name of at most 256 characters is required."),
        (with_service(port=65536), "services[0] (dns).port is 65536: a port from 1 to 65535 is required."),
        (with_service(bind=[]), "services[0] (dns).bind is []: a list of 1 or more is required."),
        (with_service(bind="eth0"), "'*', '::' or an IPv4 or IPv6 address is required."),
        (with_service(bind="fe80::1"), "nobody can listen there: a unicast address that is not link-local is required"),
        (with_service(bind="224.0.0.1"), "nobody can listen there: "),
        (with_service(mode="udp"), "services[0] (dns).mode is 'udp': one of tcp, http is required."),
        (with_service(balance="random"), "one of roundrobin, leastconn, source is required."),
        (with_service(servers=[]), "services[0] (dns).servers is []: a list of 1 or more is required."),
        (with_service(servers=["192.0.2.1"] * 2), "services[0] (dns).servers has '192.0.2.1' twice: "),
        (with_service(servers=["db.example.org"]), "servers[0].address is 'db.example.org': an IPv4 or IPv6 address"),
        (with_server(address="0.0.0.0"), "no host can be reached at that address."),
        (with_server(address="ff02::1"), "no host can be reached at that address."),
        (with_server(address="fe80::1"), "no host can be reached at that address."),
        (with_server(port=0), "services[0] (dns).servers[0].port is 0: a port from 1 to 65535 is required."),
        (with_server(weight=257), "services[0] (dns).servers[0].weight is 257: a whole number from 0 to 256"),
        (with_server(maxconn=-1), "services[0] (dns).servers[0].maxconn is -1: a whole number from 0 to 1000000"),
        (
            written(workers=41),
            "b has maxconn 40, which 41 workers share, and each needs at least 1: raise it to 41, or ",
        ),
        (written(retries=101), "configuration.retries is 101: a whole number from 0 to 100 is required."),
        (with_server(address="192.0.2.10"), "a at 192.0.2.10 port 53 is the service itself: "),
        (with_service(allow=["192.0.2.1/24"]), "services[0] (dns).allow is ['192.0.2.1/24']: in it '192.0.2.1/24'"),
        (with_service(allow=["::/0"]), "in it '::/0' is wrong: that is every address: name the networks"),
        (with_service(allow=["fe80::%a/64"]), "is wrong: a network such as 192.0.2.0/24, or an address, is required."),
        (with_service(routes=[5]), "services[0] (dns).routes[0] is 5: a mapping with the keys hosts, name, "),
        (with_route(hosts=[]), "routes[0] (shard).hosts is []: a list of 1 or more is required."),
        (with_route(hosts=["*"]), "in it '*' is wrong: the name of a host, without a port, or all below one, such as"),
        (with_route(port=1), "services[0] (dns).routes[0] (shard) has the unknown key 'port'"),
        (with_route(servers=[]), "services[0] (dns).routes[0] (shard).servers is []: a list of 1 or more is required."),
        (with_route(name="dns"), "services has the name 'dns' twice: give each its own."),
        (with_route(servers=["192.0.2.10"]), "routes[0] (shard).servers: 192.0.2.10 at 192.0.2.10 port 53 is the"),
        (with_route(check={"type": "http", "sni": "a"}), "services[0] (dns).routes[0] (shard).check.sni is for a"),
        (with_service(mode="http", routes=[ROUTE]), "services[0] (dns).routes need mode tcp: "),
        (
            with_service(routes=[ROUTE, {**ROUTE, "name": "b", "hosts": ["a.shard.example"]}]),
            "services[0] (dns).routes[1] (b).hosts has a.shard.example, which services[0] (dns).routes[0] (shard) tak",
        ),
        (with_service(bind="*", servers=["127.0.0.1"]), "127.0.0.1 at 127.0.0.1 port 53 is the service itself: "),
        (with_service(bind="::", servers=["::1"]), "::1 at ::1 port 53 is the service itself: "),
        (with_check(type="icmp"), "services[0] (dns).check.type is 'icmp': one of tcp, http, https, mysql, "),
        (with_check(path="/x"), "check.path is for a check of type http or https, and this one is tcp: leave it out."),
        (with_check(type="http", verify=True), "check.verify is for a check of type https, and this one is http: "),
        (with_check(type="https", ca="/x"), "check.ca is set, but verify is false: set verify to true"),
        (with_check(type="http", path="x y"), "a URL path is required: it begins with / and has neither spaces nor #."),
        (with_check(type="http", status=["300-200"]), "codes from 100 to 599 and ranges of them are"),
        (with_check(type="http", status=[]), "check.status is []: codes from 100 to 599 and"),
        (with_check(type="http", sni="x"), "check.sni is for a check of type https, and this one is http: leave it"),
        (with_check(type="none", steps=[{"type": "tcp"}]), "check.type is none, but steps are set: leave one of them"),
        (with_check(steps=[{"path": "/x"}]), "check.steps[0].path is for a check of type http or https, and this one"),
        (with_check(steps=[{"prot": 1}]), "services[0] (dns).check.steps[0] has the unknown key 'prot': did you mean"),
        (with_check(verify=True, steps=[{"type": "http"}]), "check.verify is for a check of type https, and this one"),
        (with_check(interval=0), "services[0] (dns).check.interval is 0: a number from 0.1 to 3600 seconds is"),
        (with_monitor(port=None), "monitors[0] (alive) lacks 'port': add it."),
        (with_monitor(at_least=["dns"]), "a mapping of services' names to numbers of servers is required."),
        (with_monitor(at_least={"dns": 0}), "for dns a number of servers from 1 to 10000 is required."),
        (with_monitor(at_least={"web": 1}), "at_least has 'web', and there is no such service: "),
    ],
)  # fmt: skip
def test_each_fault_is_a_sentence_with_its_place(text, sentence):
    faults = faults_of(text)
    assert any(sentence in fault for fault in faults), faults
    assert len(faults) == 1


@pytest.mark.parametrize(
    "bind, clash",
    [("*", True), ("0.0.0.0", True), ("192.0.2.10", True), ("192.0.2.11", False), ("::", False)],
)
def test_two_services_on_one_port(bind, clash):
    faults = faults_of(json.dumps({"services": [DNS, {**DNS, "name": "two", "bind": bind}]}))
    place = f"{'*' if bind == '0.0.0.0' else bind} port 53"
    sentence = f"service dns and service two both listen on {place}: change a port or bind them to different addresses."
    assert faults == ([sentence] if clash else [])


@pytest.mark.parametrize("bind", [["*", "192.0.2.1"], ["::", "::1"], ["192.0.2.1", "192.0.2.1"]])
def test_addresses_of_one_service_that_overlap(bind):
    (fault,) = faults_of(with_service(bind=bind, servers=["198.51.100.1"]))
    assert fault == f"service dns: bind has {bind[0]} and {bind[1]}, which overlap: leave one out."


@pytest.mark.parametrize(
    "second, fault",
    [
        ({"path": "/two"}, None),
        ({}, "monitor alive and monitor two both answer / on 127.0.0.1 port 9444: change one of the paths."),
        ({"path": "/two", "bind": "*"}, "monitor alive and monitor two both listen on * port 9444: "),
    ],
)
def test_monitors_may_share_a_place_but_no_path(second, fault):
    monitors = [{"name": name, "bind": "127.0.0.1", "port": 9444} for name in ("alive", "two")]
    monitors[1].update(second)
    faults = faults_of(json.dumps({"services": [DNS], "monitors": monitors}))
    assert len(faults) == bool(fault) and all(each.startswith(fault) for each in faults)


def test_a_service_may_have_fewer_servers_than_a_monitor_wants_because_nodes_leave_a_cluster():
    assert faults_of(with_monitor(at_least={"dns": 2})) == []


def test_the_page_and_a_monitor_may_not_share_a_place():
    (fault,) = faults_of(written(page={"bind": "127.0.0.1", "port": 9444}, monitors=GOOD["monitors"][:1]))
    assert fault.startswith("monitor alive and page both listen on 127.0.0.1 port 9444: ")


def test_what_is_spelled_out_although_it_is_the_default_does_no_harm():
    assert faults_of(with_check(type="tcp", path="/", host="", verify=False, ca="", status=["200-399"])) == []


@pytest.mark.parametrize(
    "status, read",
    [
        (200, ("200",)),
        ("204", ("204",)),
        ("200-399", ("200-399",)),
        ([200, 401], ("200", "401")),
        (["200-299", 401], ("200-299", "401")),
    ],
)
def test_good_statuses_are_codes_and_ranges_or_a_single_one(status, read):
    found, faults = config.parse(with_check(type="http", status=status))
    assert (found.services[0].health.status, faults) == (read, [])


def test_a_step_takes_from_its_check_what_it_leaves_out():
    steps = [{"port": 6443, "status": [200, 401]}, {"port": 9345, "path": "/ping", "host": "b"}, {"type": "tcp"}]
    found, faults = config.parse(with_check(type="https", path="/readyz", host="a", verify=True, steps=steps))
    assert faults == []
    assert found.services[0].health.steps == (
        settings.Step("https", 6443, "/readyz", "a", "", ("200", "401")),
        settings.Step("https", 9345, "/ping", "b"),
        settings.Step("tcp", 0),
    )


def test_all_faults_are_found_at_once():
    bad = {**WEB, "port": 0, "balance": "x", "servers": [{"address": 7}], "check": {"rise": 0}}
    assert len(faults_of(json.dumps({"services": [bad], "monitors": [{}], "workers": 0}))) == 7


def test_a_certificate_must_be_one(tmp_path):
    path = tmp_path / "ca.pem"
    check = {"type": "https", "verify": True, "ca": str(path)}
    place = f"services[0] (dns).check.ca is {str(path)!r}: "
    assert faults_of(with_check(**check), host) == [f"{place}it cannot be read: No such file or directory."]
    path.write_text("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
    assert faults_of(with_check(**check), host) == [f"{place}there is no certificate in it (PEM)."]
    path.write_text("")
    assert faults_of(with_check(**check), host) == [f"{place}there is no certificate in it (PEM)."]
    theirs = ssl.get_default_verify_paths().cafile
    if theirs:
        assert faults_of(with_check(**{**check, "ca": theirs}), host) == []


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path):
    _text, found, faults = config.load(str(tmp_path / "none.json"))
    assert found is None and faults == [f"{tmp_path}/none.json cannot be read: No such file or directory."]
    (tmp_path / "latin.json").write_bytes(b'{"services": ["\xe4"]}')
    assert config.load(str(tmp_path / "latin.json")).faults == [
        f"{tmp_path}/latin.json is not JSON: it is not written in UTF-8."
    ]


def test_a_file_that_is_nested_without_end_is_refused():
    assert len(faults_of("[" * 100_000)) == 1
    assert len(faults_of('{"services": ' + "[" * 900 + "]" * 900 + "}")) >= 1


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = [*config.CONFIGURATION, *config.SERVICE, *config.CHECK, *config.SERVER, *config.ROUTE, *config.MONITOR]


@given(
    st.sampled_from(["whole", "service", "check", "server", "route", "monitor", "page"]),
    st.sampled_from(KEYS),
    ANYTHING,
)
def test_no_value_makes_it_raise(where, key, value):
    given = json.loads(written())
    web = given["services"][0]
    web["routes"] = [{**ROUTE}]
    places = {
        "whole": given,
        "service": web,
        "check": web["check"],
        "server": web["servers"][1],
        "route": web["routes"][0],
        "monitor": given["monitors"][1],
        "page": given["page"],
    }
    places[where][key] = value
    faults_of(json.dumps(given))
