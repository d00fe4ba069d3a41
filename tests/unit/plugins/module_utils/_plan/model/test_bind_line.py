# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Behind the address on a service's `bind` lines: what is accepted, what haproxy makes of it, who answers."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import verification
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import questions
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, asked, bind_line
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.certificates import certificate
from support.plans.pairs import pair
from support.rendering import haproxy as rendered
from support.rendering import haproxy_model

WEB = {"name": "web", "port": 80, "mode": "http", "servers": ["192.0.2.31"]}
OTHER = {"name": "other", "port": 80, "mode": "http", "servers": ["192.0.2.32"]}


def faults(*services):
    return haproxy_model(services)["faults"]


def accepted(text, folder):
    """Have haproxy judge a configuration; return its lines."""
    file = folder / "haproxy.cfg"
    file.write_text(text)
    done = subprocess.run(["haproxy", "-c", "-f", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize(
    "options, sentence",
    [
        ("tfo", "bind_options is 'tfo': a list is required, such as "),
        (
            {"tfo": True},
            "bind_options is a mapping: a list is required: write [ ] around it.",
        ),
        ([{}], "bind_options is a list of mappings or lists: in it a mapping is wrong: an HAProxy option"),
        ([5], "in it 5 is wrong: an HAProxy option with its arguments is required, such as 'maxconn 100'."),
        ([None], "in it null is wrong: an HAProxy option"),
        ([""], "in it '' is wrong: an HAProxy option"),
        (["# x"], "is wrong: an HAProxy option"),
        (["maxconn 100\nbind :1"], "one line of printable characters is required."),
        (["name 'x"], "a quote has no end: close it."),
        (["ssl"], "ssl is said by tls.certificate of the service: leave it out here, and set that."),
        (["tfo crt /secret"], "in it 'tfo crt /secret' is wrong: crt is said by tls.certificate of the service"),
        (["alpn h2"], "alpn is said by tls.alpn of the service"),
        (["v4v6"], "v4v6 is said by bind of the service"),
        (["id 7"], "with id each address of the service would get the same number: leave it out."),
        (["ocsp-update on"], "with ocsp-update HAProxy refuses the line: ocsp-update.mode in haproxy_global_lines"),
        (["namespace blue"], "with namespace the VIPs are in the host's own namespace: leave it out."),
    ],
)
def test_what_is_no_option_or_that_of_a_key_is_refused_in_a_sentence(options, sentence):
    (fault,) = faults({**WEB, "bind_options": options})
    assert fault.startswith("haproxy_services[0] (web).bind_options is ") and sentence in fault


def test_a_route_listens_nowhere():
    (fault,) = faults({**WEB, "routes": [{"name": "a", "paths": ["/a"], "servers": [], "bind_options": ["tfo"]}]})[:1]
    assert ".routes[0] (a) has the unknown key 'bind_options'" in fault


def test_haproxy_has_the_options_on_each_address_and_on_the_redirect(tmp_path):
    pem = certificate(tmp_path)
    options = ["tfo", "maxconn 100", "name 'it is #1 {{ x }} ä'", "interface lo", "accept-proxy"]
    web = {**WEB, "port": 443, "bind": ["*", "::"], "tls": {"certificate": str(pem), "redirect": 80, "profile": "none"}}
    lines = accepted(rendered([{**web, "bind_options": options}]), tmp_path)
    words = "tfo maxconn 100 name 'it is #1 {{ x }} ä' interface lo accept-proxy"
    assert [line for line in lines if line.startswith("bind ")][:4] == [
        f"bind *:443 ssl crt {pem} {words}",
        f"bind [::]:443 v6only ssl crt {pem} {words}",
        f"bind *:80 {words}",
        f"bind [::]:80 v6only {words}",
    ]


def test_the_agent_refuses_them():
    found = agent.translate({"services": [{**WEB, "mode": "tcp", "bind_options": ["interface eth1"]}]})["faults"]
    assert found == [
        "agent_services (web).bind_options has 'interface eth1', which only HAProxy has: leave it out, or use HAProxy."
    ]


@pytest.mark.parametrize("first, second, clash", [("eth0", "eth1", False), ("eth0", "", False), ("eth0", "eth0", True)])
def test_two_services_share_a_port_on_two_interfaces(first, second, clash):
    one, two = ([f"interface {each}"] if each else [] for each in (first, second))
    found = faults({**WEB, "bind_options": ["tfo", *one]}, {**OTHER, "bind_options": two})
    assert [fault.partition(":")[0] for fault in found] == (
        ["service web and service other both listen on * port 80"] if clash else []
    )


@pytest.mark.parametrize("option", ["interface eth0", "accept-proxy", "accept-netscaler-cip 5"])
def test_what_is_not_served_to_the_host_itself_answers_no_check_of_its_router(option):
    question = {"name": "chk", "address": "localhost", "port": 80, "path": "/", "tls": False}
    plain, own = ({**WEB, **more} for more in ({}, {"bind_options": [option]}))
    of = [asked.of_services(haproxy_model([each])["services"]) for each in (plain, own)]
    assert [len(asked.faults([question], each, "lb1")) for each in of] == [0, 1]


def test_only_the_others_connect_to_a_service_on_one_interface():
    plan = as_data(_pair.plan(pair(services=[{**WEB, "bind_options": ["interface eth0"]}])))
    expected = plan["members"]["lb1"]["expected"]
    listens = [{"port": each["port"], "program": "haproxy"} for each in expected["services"]]
    seen = {"addresses": [], "answering": {}, "active_units": expected["units"], "listeners": listens, "stale": []}
    seen.update(reached=[], down_file="", in_fault={})
    (_none, unreached) = verification.faults(expected, seen)
    assert unreached == "nothing answers through the VIP at 192.0.2.10 port 80."
    holder = {**seen, "addresses": [{"address": "192.0.2.10", "interface": "eth0", "prefix": 32}]}
    assert verification.faults(expected, holder) == []
    assert bind_line.expected(haproxy_model([WEB])["services"][0]) == {"name": "web", "port": 80}


HEADED = "HTTP at 80 behind a PROXY header"
TLS = {"certificate": "/etc/web.pem"}


@pytest.mark.parametrize(
    "service, asked_words",
    [
        ({}, ["HTTP at 80"]),
        ({"bind_options": ["accept-proxy"]}, [HEADED]),
        ({"accept_proxy": ["192.0.2.7"]}, ["HTTP at 80", HEADED]),
        ({"bind_options": ["accept-proxy"], "tls": TLS}, [questions.CONNECTS]),
        ({"accept_proxy": ["192.0.2.7"], "tls": TLS}, ["TLS at 80"]),
    ],
)
def test_a_drill_and_the_status_ask_with_a_proxys_header_where_it_is_expected(service, asked_words):
    found = questions.questions([as_data(_pair.plan(pair(services=[{**WEB, **service}])))])
    assert [each["words"] for each in found] == asked_words
    assert all(each["send"].startswith("PROXY UNKNOWN\r\nGET ") for each in found if each["words"] == HEADED)


@pytest.mark.parametrize(
    "given, sentence",
    [
        (True, "accept_proxy is true: a list is required."),
        ("192.0.2.0/24", "accept_proxy is '192.0.2.0/24': a list is required, such as "),
        (
            {"a": 1},
            "accept_proxy is a mapping: a list is required: write [ ] around it.",
        ),
        ([None], "in it null is wrong: "),
        ([""], "in it '' is wrong: "),
        (["192.0.2.0/24\n"], "is wrong: "),
        (["proxy.example.com"], "in it 'proxy.example.com' is wrong: "),
    ],
)
def test_who_is_no_network_is_refused_as_a_proxy(given, sentence):
    (fault,) = faults({**WEB, "accept_proxy": given})
    assert fault.startswith("haproxy_services[0] (web).accept_proxy is ") and sentence in fault


def test_nobody_can_be_one_of_the_proxies_where_everybody_has_to():
    (fault,) = faults({**WEB, "accept_proxy": ["192.0.2.7"], "bind_options": ["tfo accept-proxy"]})
    assert fault.endswith("by bind_options everybody has to: leave one of them out.")


def test_rules_follow_the_header_of_the_proxies(tmp_path):
    web = {**WEB, "port": 443, "tls": {"certificate": str(certificate(tmp_path)), "redirect": 80}}
    proxies = {"accept_proxy": ["192.0.2.7", "2001:db8::/64"], "allow": ["198.51.100.0/24"]}
    lines = accepted(rendered([{**web, **proxies}]), tmp_path)
    assert [line for line in lines if line.startswith("tcp-request")] == [
        "tcp-request connection expect-proxy layer4 if { src 192.0.2.7 2001:db8::/64 }",
        "tcp-request session reject unless { src 198.51.100.0/24 }",
    ] * 2


def test_a_firewall_lets_the_proxies_in_beside_their_clients():
    networks = {"accept_proxy": ["203.0.113.0/24"], "allow": ["198.51.100.0/24"]}
    plan = _pair.plan(pair(services=[{**WEB, **networks}]))
    (restricted,) = plan.members["lb1"].firewall.restricted_ports
    assert restricted["networks"][:2] == ["198.51.100.0/24", "203.0.113.0/24"]
    plan = _pair.plan(pair(services=[{**WEB, "accept_proxy": ["203.0.113.0/24"]}]))
    assert plan.members["lb1"].firewall.ports == [80] and not plan.members["lb1"].firewall.restricted_ports


def test_the_agent_reads_no_header():
    (fault,) = agent.translate({"services": [{**WEB, "mode": "tcp", "accept_proxy": ["192.0.2.7"]}]})["faults"]
    assert fault.startswith("agent_services (web).accept_proxy is set, and the agent reads no header of a proxy: ")


def test_many_networks_are_on_several_lines_as_haproxy_reads_64_words_of_one(tmp_path):
    networks = [f"198.51.100.{number}" for number in range(120)]
    lines = accepted(rendered([{**WEB, "accept_proxy": networks[:57], "allow": networks}]), tmp_path)
    of_acl = [line.split() for line in lines if line.startswith("acl ")]
    assert [len(words) - 3 for words in of_acl] == [56, 1, 57, 57, 6]
    assert [network for words in of_acl for network in words[3:]] == [*networks[:57], *networks]
    assert [line for line in lines if line.startswith("tcp-request")] == [
        "tcp-request connection expect-proxy layer4 if onprem_accept_proxy",
        "tcp-request session reject unless onprem_allow",
    ]


def test_as_many_networks_as_one_line_has_room_for_stay_on_it(tmp_path):
    networks = [f"198.51.100.{number}" for number in range(57)]
    for given in ({"allow": networks}, {"accept_proxy": networks[:56]}):
        lines = accepted(rendered([{**WEB, **given}]), tmp_path)
        assert [len(line.split()) for line in lines if line.startswith(("tcp-request", "acl"))] == [64]


@pytest.mark.parametrize("number, is_too_long", [(27, False), (28, True)])
def test_a_bind_line_has_as_many_words_as_haproxy_reads(tmp_path, number, is_too_long):
    pems = [certificate(tmp_path)]
    pems += [tmp_path / f"{at}.pem" for at in range(number - 1)]
    for pem in pems[1:]:
        pem.write_text(pems[0].read_text())
    options = ["tfo", "maxconn 100", "name 'one word'"]
    web = {
        **WEB,
        "bind": ["::"],
        "tls": {"certificate": list(map(str, pems)), "profile": "none"},
        "bind_options": options,
    }
    found = faults(web)
    assert [fault.partition(", and")[0] for fault in found] == (
        ["haproxy_services[0] (web) has 62 words for its bind line"] if is_too_long else []
    )
    if not is_too_long:
        accepted(rendered([web]), tmp_path)
