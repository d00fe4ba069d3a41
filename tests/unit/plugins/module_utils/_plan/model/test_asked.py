# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No variable of a balancer changes what a check of its host asks for, unless the run is refused by the check's name.

Each is changed, and the configuration that comes of it is read by itself.
"""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import configurations
from ansible_collections.onprem.lb.plugins.plugin_utils import templates
from support import answering, variable_tables

SERVERS = {"servers": ["192.0.2.41"]}
CERTIFICATE = "/etc/haproxy/site.pem"
WEB = {"name": "web", "port": 8080, "mode": "http", **SERVERS}
RAW = {"name": "raw", "port": 8081, **SERVERS}
SECURE = {"name": "secure", "port": 443, "mode": "http", "tls": {"certificate": CERTIFICATE, "redirect": 8088}}
SECURE.update(SERVERS)
MONITOR = {"name": "alive", "port": 8082, "path": "/alive"}
LINES = ["frontend own", "    bind 127.0.0.1:8083", "    mode http", "    http-request return status 200"]
OF_BOTH = {"services": [WEB, RAW], "monitors": [MONITOR]}
BEFORE = {"haproxy": {"services": [WEB, RAW, SECURE], "monitors": [MONITOR], "extra_lines": LINES}, "agent": OF_BOTH}


def question(port, path="/", tls=False, address="127.0.0.1"):
    return {"name": f"asks-{port}", "address": address, "port": port, "path": path, "tls": tls, "answered": True}


OWN = "192.0.2.2"  # an address of the host
ASKED = {
    "agent": [
        *(question(8080), question(8080, address=OWN), question(8081, tls=True), question(8082, "/alive")),
        question(9000),
    ],
    "haproxy": [
        *(question(8080), question(8080, address=OWN), question(8081, tls=True), question(8082, "/alive")),
        *(question(443, tls=True), question(8088), question(8083)),
        *(question(9000, "/haproxy_stats"), question(9000, "/metrics")),
    ],
}


def changed(item, **changes):
    """What a list of services or monitors becomes where one of them changes."""
    kind = "monitors" if item is MONITOR else "services"
    return {kind: [{**item, **changes}, *(each for each in BEFORE["haproxy"][kind] if each is not item)]}


def of_both(item, **changes):
    return {key: [each for each in some if each != SECURE] for key, some in changed(item, **changes).items()}


# By role and variable: other values, and the ports at which a check then finds nothing.
CHANGES = {
    "agent": [
        (of_both(WEB, port=8090), {8080}),
        (of_both(WEB, bind=["192.0.2.10"]), {8080}),
        (of_both(WEB, bind=["192.0.2.2"]), {8080}),
        (of_both(WEB, allow=["192.0.2.64/26"]), {8080}),
        (of_both(WEB, allow=["127.0.0.0/8", "192.0.2.0/24"]), set()),
        (of_both(WEB, name="shop"), set()),
        (of_both(RAW, mode="http"), {8081}),
        ({"services": [WEB]}, {8081}),
        (of_both(MONITOR, port=8092), {8082}),
        (of_both(MONITOR, path="/well"), {8082}),
        (of_both(MONITOR, bind=["192.0.2.2"]), {8082}),
        ({"monitors": []}, {8082}),
        ({"stats_enabled": False}, {9000}),
        ({"stats_port": 9001}, {9000}),
        ({"stats_address": "127.0.0.2"}, {9000}),
    ],
    "haproxy": [
        (changed(WEB, port=8090), {8080}),
        (changed(WEB, bind=["192.0.2.10"]), {8080}),
        (changed(WEB, allow=["192.0.2.64/26"]), {8080}),
        (changed(WEB, allow=["127.0.0.0/8", "192.0.2.0/24"]), set()),
        (changed(WEB, tls={"certificate": CERTIFICATE}), {8080}),
        (changed(WEB, bind_options=["tfo", "accept-proxy"]), {8080}),
        (changed(WEB, accept_proxy=["192.0.2.0/30"]), {8080}),
        (changed(WEB, accept_proxy=["198.51.100.0/24"]), set()),
        (changed(SECURE, accept_proxy=["127.0.0.1"], tls={"certificate": CERTIFICATE, "redirect": 8088}), {443, 8088}),
        (changed(SECURE, bind_options=["interface eth0"]), {443, 8088}),
        (changed(RAW, mode="http"), {8081}),
        ({"services": [WEB, RAW]}, {443, 8088}),
        (changed(SECURE, tls=None), {443, 8088}),
        (changed(SECURE, tls={"certificate": "/etc/haproxy/other.pem", "redirect": 8088}), set()),
        (changed(SECURE, tls={"certificate": CERTIFICATE, "redirect": 8089}), {8088}),
        (changed(SECURE, tls={"certificate": CERTIFICATE, "redirect": 8088, "ca": "/etc/ca.pem"}), {443}),
        (changed(SECURE, tls={"certificate": CERTIFICATE, "redirect": 8088, "strict_sni": True}), {443}),
        (
            changed(SECURE, tls={"certificate": CERTIFICATE, "redirect": 8088, "ca": "/a.pem", "verify": "optional"}),
            set(),
        ),
        (changed(MONITOR, port=8092), {8082}),
        (changed(MONITOR, path="/well"), {8082}),
        ({"monitors": []}, {8082}),
        ({"extra_lines": []}, {8083}),
        ({"stats_enabled": False}, {9000}),
        ({"stats_address": "127.0.0.2"}, {9000}),
        ({"stats_port": 9001}, {9000}),
        ({"stats_uri": "/page"}, {9000}),
        ({"metrics_path": "/numbers"}, {9000}),
        ({"metrics_path": ""}, {9000}),
        ({"stats_user": "ops", "stats_password": "an0ther1"}, {9000}),
    ],
}
# The others are of what happens behind the place where a balancer listens, of its unit, or of the router.
NO_MATTER = {
    "agent": (
        *("state", "maxconn", "retries", "workers", "hard_stop_after", "stop_within", "stop_pause", "down_file"),
        *("timeout_connect", "timeout_client", "timeout_server", "timeout_queue", "timeout_check", "timeout_tunnel"),
        *("timeout_fin", "start_commands", "stop_commands", "instances", "scripts", "track_files", "sync_groups"),
        *("auth_pass", "script_user", "startup_delay", "checksum", "firewall", "python", "replace"),
        *("stats_user", "stats_password"),  # which are refused
        "answer_port",  # which the layouts keep: see `still_asked`
    ),
    "haproxy": (
        *("state", "maxconn", "retries", "timeout_connect", "timeout_client", "timeout_server", "timeout_queue"),
        *("timeout_check", "timeout_http_request", "timeout_http_keep_alive", "timeout_tunnel", "timeout_fin"),
        *("hard_stop_after", "log_targets", "log_normal", "nameservers", "resolve_prefer", "nonlocal_bind", "adopt"),
        *("config_path", "down_file", "stop_pause", "start_commands", "stop_commands", "packages"),
        *("global_lines", "defaults_lines"),  # which listen nowhere in HTTP
        *("peers", "peers_port"),  # to whom no check speaks
        "answer_port",
    ),
}
EVERY = [(role, changes, lost) for role, every in CHANGES.items() for changes, lost in every]


def made(role, changes, asking=()):
    """The faults of a role's variables, and the configuration if there are none."""
    settings = {**BEFORE[role], **changes}
    if role == "agent":
        found = agent.translate(settings, host="lb1", asking=asking)
        return found["faults"], "" if found["faults"] else json.dumps(found["proxy"])
    found = haproxy.model(haproxy.settings_of(settings), [], "lb1", asking=asking)
    if found["faults"]:
        return found["faults"], ""
    model = {"model": haproxy.for_template(found), "family": configurations.FAMILY}
    return [], templates.render("haproxy/haproxy.cfg.j2", model)


ANSWERS = {"agent": answering.by_agent, "haproxy": answering.by_haproxy}


@pytest.mark.parametrize("role", CHANGES)
def test_what_is_asked_is_answered_before_anything_changes(role):
    faults, text = made(role, {}, ASKED[role])
    assert faults == []
    assert [each for each in ASKED[role] if not ANSWERS[role](text, each)] == []


@pytest.mark.parametrize("role, changes, lost", EVERY, ids=lambda value: value if isinstance(value, str) else "")
def test_a_configuration_is_refused_if_and_only_if_it_leaves_a_check_without_an_answer(role, changes, lost):
    faults, text = made(role, changes)
    assert faults == []
    unanswered = [each for each in ASKED[role] if not ANSWERS[role](text, each)]
    assert {each["port"] for each in unanswered} == lost
    refused, _text = made(role, changes, ASKED[role])
    assert len(refused) == len(unanswered)
    for fault, each in zip(refused, unanswered):
        assert f"lb1: the check {each['name']} asks http" in fault and f":{each['port']}, which the balancer" in fault


@pytest.mark.parametrize("role", CHANGES)
def test_each_variable_of_a_balancer_is_changed_here_or_is_no_matter_of_what_is_asked(role):
    known = {name[len(role) + 1 :] for name in variable_tables.options(role)}
    changing = {key for changes, _lost in CHANGES[role] for key in changes}
    assert known == {*changing, *NO_MATTER[role]}
    assert not changing.intersection(NO_MATTER[role])


def test_a_path_is_not_shown_which_may_have_a_token():
    secret = question(9999, "/health?token=s3cret")
    assert made("haproxy", {}, [secret])[0] == [
        "lb1: the check asks-9999 asks http://127.0.0.1:9999, which the balancer would no longer answer: first "
        "change the check to ask for something that stays, in a run of its own."
    ]


@pytest.mark.parametrize("address, is_answered", [("localhost", True), ("127.0.0.1", True), ("::1", False)])
def test_localhost_is_either_of_its_addresses(address, is_answered):
    assert (made("haproxy", {}, [question(8080, address=address)])[0] == []) is is_answered


def test_a_redirect_to_tls_has_none_itself():
    assert made("haproxy", changed(SECURE, mode="tcp"), [question(8088)])[0] == []
    assert made("haproxy", changed(SECURE, mode="tcp"), [question(8088, tls=True)])[0] != []
