# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What HAProxy remembers of clients: `sticky`, `rate_limit`, and the names of what they need in haproxy.cfg.

What a client sees of them is played in tests/netns/test_stick_tables.py.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, stick
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import pair
from support.rendering import haproxy, haproxy_model

WEB = {"name": "web", "port": 80, "mode": "http", "servers": ["192.0.2.31", {"address": "192.0.2.32", "backup": True}]}
RAW = {"name": "raw", "port": 5000, "servers": ["192.0.2.31"]}
API = {"name": "api", "paths": ["/api"], "servers": ["192.0.2.41"]}
PLACE = "haproxy_services[0] (web)"
TABLE = "stick-table type ip size 1k expire 30s"
PEERS = "peers haproxy_peers"
SOURCE, COOKIE = {"by": "source"}, {"by": "cookie"}


def faults(*services, **variables):
    return haproxy_model(services, **variables)["faults"]


def sections(*services, **variables):
    """Return the lines of each section of a haproxy.cfg that haproxy itself has accepted, by its first line."""
    text = haproxy(list(services), **variables)
    checked = subprocess.run(
        [shutil.which("haproxy"), "-c", "-f", "/dev/stdin"], input=text, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0 and "WARNING" not in checked.stderr, checked.stderr
    found, head = {}, ""
    for line in text.splitlines():
        if line[:1].isalpha():
            head = line
        elif line.strip():
            found.setdefault(head, []).append(line.strip())
    return found


def test_a_table_is_alone_in_a_backend_of_its_own_so_that_a_service_has_as_many_as_it_needs():
    routes = [{**API, "sticky": {"by": "req.hdr(X-Session)", "len": 128, "size": 5000}}]
    service = {**WEB, "sticky": SOURCE, "rate_limit": {"requests": 100}, "routes": routes}
    found = sections(service)
    assert found["backend web-rate"] == [
        f"stick-table type ipv6 size 100k expire 20000ms store http_req_rate(10s) {PEERS}"
    ]
    assert found["backend web-sticky"] == [f"stick-table type ipv6 size 100k expire 30m {PEERS}"]
    assert found["backend api-sticky"] == [f"stick-table type string len 128 size 5000 expire 30m {PEERS}"]
    assert "stick on req.hdr(X-Session) table api-sticky" in found["backend api"]


def test_a_cookie_of_the_application_counts_from_the_answer_that_gives_it():
    found = sections({**WEB, "sticky": {"by": "req.cook(JSESSIONID),lower"}})["backend web"]
    assert "stick store-response res.cook(JSESSIONID),lower table web-sticky" in found
    found = sections({**WEB, "sticky": {"by": "req.hdr(X-Session)"}})["backend web"]
    assert not [line for line in found if "store-response" in line]


def test_late_servers_keep_their_clients():
    found = sections({**WEB, "sticky": SOURCE}, {**WEB, "name": "own", "port": 81, "sticky": COOKIE})
    for name in ("web", "own"):
        kept = [line for line in found[f"backend {name}"] if line.startswith(("stick", "cookie", "dynamic"))]
        assert kept and set(kept) <= set(found[f"backend {name}-fallback"])


def test_a_backup_does_not_keep_the_clients_that_a_table_remembers():
    assert (
        "server 192.0.2.32 192.0.2.32:80 weight 1 backup non-stick"
        in sections({**WEB, "sticky": SOURCE})["backend web"]
    )


@pytest.mark.parametrize("tls, secure", [(None, ""), ({"certificate": "/etc/ssl/web.pem"}, " secure")])
def test_a_cookie_is_for_haproxy_alone_and_never_in_clear_beside_tls(tls, secure):
    text = haproxy([{**WEB, "sticky": {"by": "cookie", "cookie": "LB"}, "tls": tls}])
    assert f"\n    cookie LB insert indirect nocache httponly{secure} dynamic\n" in text


def test_each_sign_of_a_cookies_name_is_what_haproxy_reads():
    name = "a!$%&*+.^_`|~-1"
    assert (
        f"cookie {name} insert indirect nocache httponly dynamic"
        in sections({**WEB, "sticky": {"by": "cookie", "cookie": name}})["backend web"]
    )


def test_too_much_is_answered_where_there_is_http_and_closed_elsewhere():
    limits = {"connections": 10, "period": "1m", "except": ["192.0.2.0/24", "2001:db8::/32"]}
    found = sections({**WEB, "rate_limit": {"requests": 20}}, {**RAW, "rate_limit": limits})
    assert found["frontend web"][3:5] == [
        "http-request track-sc2 src table web-rate unless { src 127.0.0.0/8 ::1 }",
        "http-request deny deny_status 429 if { sc_http_req_rate(2) gt 20 }",
    ]
    assert found["frontend raw"][3:5] == [
        "tcp-request session track-sc2 src table raw-rate unless { src 127.0.0.0/8 ::1 192.0.2.0/24 2001:db8::/32 }",
        "tcp-request session reject if { sc_conn_rate(2) gt 10 }",
    ]
    found = sections({**WEB, "rate_limit": {"connections": 20}})
    assert found["frontend web"][4] == "http-request deny deny_status 429 if { sc_conn_rate(2) gt 20 }"


def test_raw_lines_that_haproxy_processes_before_a_limit_stand_before_it():
    raw = ["acl office src 192.0.2.0/24", "tcp-request connection reject if !office", "http-request deny if office"]
    found = sections({**WEB, "rate_limit": {"requests": 20}, "frontend_lines": raw})["frontend web"]
    assert [line for line in found if line in raw] == raw and found[3:5] == raw[:2] and found[5].startswith("http-req")


def test_a_limit_may_count_by_a_header():
    found = sections({**WEB, "rate_limit": {"requests": 20, "by": "req.hdr(X-Api-Key)"}})
    assert found["frontend web"][3].startswith("http-request track-sc2 req.hdr(X-Api-Key) table web-rate unless ")
    assert found["backend web-rate"][0].startswith("stick-table type string len 64 ")


def test_two_tables_in_raw_lines_need_a_frontend_with_a_name_of_its_own():
    both = {**RAW, "frontend_lines": [TABLE], "backend_lines": [TABLE, "stick on src"]}
    (fault,) = faults(both)
    assert fault == (
        "haproxy_services[0] (raw).frontend_lines and backend_lines both have a stick-table, and HAProxy has one of "
        "each name: set frontend_name, such as raw-in."
    )
    found = sections({**both, "frontend_name": "raw-in"})
    assert TABLE in found["frontend raw-in"] and TABLE in found["backend raw"]


OF_STICKY = [
    ({}, "lacks 'by': add it."),
    ({"by": ["source"]}, "by is ['source']: cookie, source or a sample of HAProxy's, such as req.cook(JSESSIONID), is"),
    ({"by": "src table other"}, "by is 'src table other': cookie, source or a sample"),
    ({"by": "req.cook('x')"}, "by is \"req.cook('x')\": cookie, source or a sample"),
    ({"by": "src # x"}, "by is 'src # x': cookie, source or a sample"),
    ({"by": "source", "expire": "0s"}, "expire is '0s': a time from 1s to 24d is required."),
    ({"by": "source", "expire": 30}, "expire is 30: a time without a unit: write 30s, or 30ms."),
    ({"by": "source", "size": "0"}, "size is '0': a number of entries such as 5000, 100k or 1m, at most 100m,"),
    ({"by": "source", "size": "1g"}, "size is '1g': a number of entries"),
    ({"by": "source", "size": True}, "size is true: a number of entries"),
    ({"by": "source", "len": 9}, "len has no use with by source: leave it out."),
    ({"by": "source", "cookie": "LB"}, "cookie has no use with by source: leave it out."),
    ({"by": "cookie", "expire": "1h"}, "expire has no use with by cookie: leave it out."),
    ({"by": "cookie", "cookie": "a b"}, "cookie is 'a b': the name of a cookie is required, such as SERVERID."),
    ({"by": "cookie", "cookie": "a;b"}, "cookie is 'a;b': the name of a cookie is required"),
    ({"by": "cookie", "cookie": "a#b"}, "cookie is 'a#b': the name of a cookie is required"),
    ({"by": "cookie", "cookie": "kêks"}, "cookie is 'kêks': the name of a cookie is required"),
    ({"by": "cookie", "table": "x"}, "has the unknown key 'table'"),
]
OF_RATE = [
    ({}, "needs either requests or connections, as a number of each client in a period: set one of them."),
    ({"requests": 1, "connections": 1}, "needs either requests or connections"),
    ({"requests": 0}, "requests is 0: a whole number from 1 to 1000000 is required."),
    ({"requests": "many"}, "requests is 'many': a whole number"),
    ({"requests": 9, "period": "10"}, "period is '10': a time without a unit: write 10s, or 10ms."),
    ({"requests": 9, "period": "2d"}, "period is '2d': a time from 1s to 1d is required."),
    ({"requests": 9, "except": "192.0.2.0/24"}, "except is '192.0.2.0/24': a list is required, such as "),
    ({"requests": 9, "except": ["0.0.0.0/0"]}, "except is ['0.0.0.0/0']: in it '0.0.0.0/0' is wrong: that is"),
    ({"requests": 9, "except": ["a\nb"]}, "except is ['a\\nb']: in it 'a\\nb' is wrong: a network such as"),
    (
        {"connections": 9, "by": "req.hdr(X)"},
        "by is req.hdr(X), and connections are counted by source alone: ",
    ),
    ({"requests": 9, "len": 9}, "len has no use with by source: leave it out."),
]
WRONG = [("sticky", *each) for each in OF_STICKY] + [("rate_limit", *each) for each in OF_RATE]


@pytest.mark.parametrize("key, given, said", WRONG)
def test_what_haproxy_could_not_do_is_refused_in_one_sentence(key, given, said):
    (fault,) = faults({**WEB, key: given})
    assert said in fault and fault.startswith(f"{PLACE}.{key}") and fault.endswith(".")
    same = _pair.plan(pair(services=[{**WEB, key: given}])).faults
    assert same == [fault.replace("haproxy_services", "pair_services")]


@pytest.mark.parametrize("key", ["sticky", "rate_limit"])
@pytest.mark.parametrize("given", [[], "source", 5, True, ""])
def test_what_is_no_mapping_is_refused(key, given):
    found = faults({**WEB, key: given})
    assert len(found) == 1 and found[0].startswith(f"{PLACE}.{key} is ") and ": a mapping with the keys " in found[0]


def test_nothing_is_what_null_says():
    assert haproxy([{**WEB, "sticky": None, "rate_limit": None, "frontend_name": None}]) == haproxy([WEB])


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"sticky": COOKIE}, "sticky.by is cookie, which needs mode http: set mode to http, or by to source."),
        (
            {"sticky": {"by": "req.cook(X)"}},
            "sticky.by is req.cook(X), which reads HTTP: set mode to http, or by to source.",
        ),
        (
            {"rate_limit": {"requests": 9}},
            "rate_limit.requests needs mode http: set mode to http, or limit connections.",
        ),
        (
            {"rate_limit": {"connections": 9}, "frontend_lines": ["tcp-request connection track-sc2 src"]},
            "rate_limit is set, and counts with HAProxy's sc2, as line 1 of frontend_lines does: use another counter "
            "there.",
        ),
        (
            {"sticky": SOURCE, "backend_lines": ["retries 5", "stick on src"]},
            "sticky is set, and line 2 of backend_lines says the same in its way: leave one of them out.",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(changes, said):
    assert faults({**RAW, **changes}) == [f"haproxy_services[0] (raw).{said}"]


def test_what_is_sticky_in_tcp_mode_may_be_the_name_in_tls():
    text = {**RAW, "frontend_lines": ["tcp-request inspect-delay 5s"], "sticky": {"by": "req.ssl_sni"}}
    assert "stick on req.ssl_sni table raw-sticky" in sections(text)["backend raw"]


def test_a_service_and_its_routes_have_different_cookies():
    service = {**WEB, "sticky": COOKIE, "routes": [{**API, "sticky": COOKIE}]}
    (fault,) = faults(service)
    assert fault == (
        f"{PLACE}.routes[0] (api).sticky.cookie is SERVERID, as that of {PLACE}: give each a name of its own."
    )


@pytest.mark.parametrize(
    "routes, shared",
    [
        ([{"hosts": ["shop.example"]}], False),
        ([{"hosts": ["shop.example"], "paths": ["/cart"]}], True),
        ([{"hosts": ["shop.example"]}, {"hosts": ["news.example"]}], False),
        ([{"hosts": ["shop.example"], "paths": ["/a"]}, {"hosts": ["shop.example"]}], True),
        ([{"hosts": ["a.shop.example"]}, {"hosts": ["*.shop.example"]}], True),
    ],
)
def test_backends_of_different_hosts_may_have_one_cookie_because_a_client_keeps_it_for_a_host(routes, shared):
    made = [{"name": f"r{at}", "servers": ["192.0.2.41"], "sticky": COOKIE, **each} for at, each in enumerate(routes)]
    found = faults({**WEB, "sticky": COOKIE, "routes": made})
    assert all(".sticky.cookie is SERVERID, as that of " in fault for fault in found) and bool(found) is shared


@pytest.mark.parametrize("name", ["web-rate", "web-sticky", "web-in"])
def test_no_two_sections_have_one_name(name):
    full = {**WEB, "sticky": SOURCE, "rate_limit": {"requests": 9}, "frontend_name": "web-in"}
    (fault,) = faults(full, {**RAW, "name": name})
    assert fault.startswith(f"{PLACE} has the section '{name}' in haproxy.cfg, and another one has it too: rename one.")
    (fault,) = faults(full, haproxy_monitors=[{"name": name, "port": 9444}])
    assert fault.startswith(f"haproxy_monitors has the name '{name}', which a service has too")


@pytest.mark.parametrize(
    "changes, said",
    [
        (
            {"sticky": SOURCE},
            "sticky is set, and the agent remembers no client: choose balance source, or use",
        ),
        ({"rate_limit": {"connections": 9}}, "rate_limit is set, and the agent counts no client: leave it out, or use"),
        (
            {"frontend_name": "in"},
            "frontend_name is set, and the agent has no frontends: leave it out, or use HAProxy.",
        ),
    ],
)
def test_the_agent_names_the_engine_that_can(changes, said):
    (fault,) = agent.translate({"services": [{**RAW, **changes}]})["faults"]
    assert fault.startswith(f"agent_services (raw).{said}")


RULES = [
    "tcp-request content accept if LOCALHOST",
    "acl known src 192.0.2.7",
    "tcp-request session accept if known",
    "tcp-request connection accept if known",
    "tcp-request inspect-delay 5s",
    "http-request set-header X-Key 1",
]
OPENING = {
    "allow": {"allow": ["192.0.2.0/24"]},
    "behind a proxy": {"allow": ["192.0.2.0/24"], "accept_proxy": ["198.51.100.1"]},
}
LIMITS = {"requests": {"rate_limit": {"requests": 9}}, "connections": {"rate_limit": {"connections": 9}}}
CASES = {
    **{f"{name}, {limit}": {**OPENING[name], **LIMITS[limit]} for name in OPENING for limit in LIMITS},
    "behind a proxy": OPENING["behind a proxy"],
    "connections": LIMITS["connections"],
    "requests": LIMITS["requests"],
}


@pytest.mark.parametrize("mode", ["http", "tcp"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_rule_stands_before_one_that_haproxy_processes_earlier(case, mode):
    """HAProxy would warn of it. Of the user's own rules those of a stage keep their order."""
    if mode == "tcp" and "requests" in case.get("rate_limit", {}):
        return  # which is refused
    lines = [line for line in RULES if mode == "http" or not line.startswith("http")]
    found = sections({**WEB, **case, "mode": mode, "frontend_lines": lines})["frontend web"]
    stages = [stick.stage(line) for line in found if line.startswith(("tcp-request", "http-request"))]
    assert [stage for stage in stages if stage] == sorted(stage for stage in stages if stage)
    assert sorted(line for line in found if line in lines) == sorted(lines)


def test_who_is_not_let_in_is_not_counted():
    found = sections({**WEB, **OPENING["allow"], **LIMITS["connections"]})["frontend web"]
    allowed, tracked, refused = (
        next(at for at, line in enumerate(found) if line.startswith(begin))
        for begin in ("tcp-request connection reject", "tcp-request session track-sc2", "http-request deny")
    )
    assert allowed < tracked < refused


@pytest.mark.parametrize("line", ["tcp-request", "tcp-request ", "acl ", "http-request"])
def test_an_unfinished_line_is_left_to_haproxy(line):
    service = {**WEB, "rate_limit": {"requests": 9}, "frontend_lines": [line]}
    assert faults(service) == []
    assert f"    {line.strip()}\n" in haproxy([service])
