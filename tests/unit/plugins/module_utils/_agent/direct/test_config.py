# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of the direct plane: what is good, and each fault as a sentence with its mend."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config
from hypothesis import given
from hypothesis import strategies as st
from support.direct.configs import API, API6, with_service, written

HERE = "services[0] (api)"


def faults(text):
    settings, found = config.parse(text)
    assert (settings is None) == bool(found)
    return found


def test_a_good_one_becomes_settings():
    settings, _faults = config.parse(written(stop_pause=0.25))
    first, second = settings.services
    assert (settings.interface, settings.stop_pause) == ("eth0", 250_000)
    assert (first.balanced.bind, first.balanced.port, first.buckets) == (("192.0.2.100",), 6443, 4096)
    assert [(each.name, each.weight, each.port) for each in first.balanced.servers] == [
        ("a", 1, 6443),
        ("b", 2, 6443),
        ("192.0.2.3", 1, 6443),
    ]
    assert (first.balanced.health.type, first.balanced.health.interval) == ("https", 500_000)
    assert (second.balanced.bind, second.buckets) == (("2001:db8::100",), 8192)
    assert (first.proxy_port, first.new_connections) == (0, "servers")


def test_what_a_balancers_own_programs_get_is_a_setting():
    settings, _faults = config.parse(with_service(proxy_port=9445, new_connections="host"))
    assert (settings.services[0].proxy_port, settings.services[0].new_connections) == (9445, "host")


def test_what_is_left_out_has_its_default():
    settings, _faults = config.parse(written())
    assert (settings.down_file, settings.nft) == ("/run/onprem-lb-direct.down", "/usr/sbin/nft")
    assert settings.status_socket == "/run/onprem-lb-direct/status.sock"


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"port": 0}, ".port is 0: a port from 1 to 65535 is required."),
        (
            {"bind": "*"},
            ".bind is '*': in it '*' is wrong: a VIP is required: one IPv4 or IPv6 address",
        ),
        ({"mode": "http"}, ".mode is 'http': nobody between clients and servers reads HTTP here: write tcp, or leave"),
        ({"buckets": 1000}, ".buckets is 1000: a power of two from 256 to 65536 is required."),
        ({"buckets": 128}, ".buckets is 128: a power of two from 256 to 65536 is required."),
        ({"proxy_port": 0}, ".proxy_port is 0: a port from 1 to 65535 is required."),
        ({"proxy_port": "9445x"}, ".proxy_port is '9445x': a port from 1 to 65535 is required."),
        ({"new_connections": "proxy"}, ".new_connections is 'proxy': one of servers, host is required."),
        ({"servers": ["192.0.2.1"]}, ".servers has one: name at least two, or leave the service to a proxy."),
        (
            {"servers": [f"192.0.2.{each}" for each in range(101, 230)]},
            ".servers has 129: name 128 at most, because",
        ),
        ({"servers": []}, ".servers is []: a list of 1 or more is required."),
        (
            {"servers": ["192.0.2.1", {"name": "x", "address": "192.0.2.1"}]},
            ".servers has the address 192.0.2.1 twice: name each host once.",
        ),
        (
            {"servers": ["192.0.2.1", {"name": "x", "address": "192.0.2.2", "port": 443}]},
            ".servers: x has the port 443, and the service 6443: a server answers clients itself, so give both the",
        ),
        (
            {"servers": ["192.0.2.1", "2001:db8::2"]},
            " has both IPv4 and IPv6 in bind and servers, ['192.0.2.100'] and ['192.0.2.1', '2001:db8::2']: make a",
        ),
        ({"servers": ["192.0.2.1", "192.0.2.100"]}, ".servers: 192.0.2.100 at 192.0.2.100 port 6443 is the service"),
        (
            {"check": {"late_timeout": 5}},
            ".check.late_timeout is 5: only a proxy can do that: leave it out, or leave the",
        ),
        ({"check": {"slow_start": 5}}, ".check.slow_start is 5: only a proxy can do that: leave it out, or leave the"),
        ({"check": {"shutdown_sessions": True}}, ".check.shutdown_sessions is true: only a proxy can do that"),
        ({"check": {"tcp_user_timeout": 9}}, ".check.tcp_user_timeout is 9: only a proxy can do that"),
        ({"balance": "leastconn"}, " has the unknown key 'balance': known are name, bind, port, mode, servers"),
        ({"check": {"interval": 0}}, ".check.interval is 0: a number from 0.1 to 3600 seconds is required."),
    ],
)
def test_a_fault_of_a_service_is_a_sentence_with_its_mend(changes, sentence):
    (fault,) = faults(with_service(**changes))
    assert fault.startswith(f"{HERE}{sentence}")


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"interface": ""}, "configuration.interface is '': a name of letters"),
        ({"interface": None}, "configuration lacks 'interface': add it."),
        ({"services": []}, "configuration.services is []: a list of 1 or more is required."),
        ({"services": [API, API]}, "services has the name 'api' twice: give each its own."),
        ({"stop_pause": 61}, "configuration.stop_pause is 61: a number from 0 to 60 seconds is required."),
        ({"workers": 2}, "configuration has the unknown key 'workers': "),
    ],
)
def test_a_fault_of_the_whole_is_a_sentence(changes, sentence):
    assert faults(written(**changes))[0].startswith(sentence)


def test_more_buckets_than_nft_can_take_are_refused():
    services = [{**API, "name": f"s{number}", "port": 7000 + number, "buckets": 65536} for number in range(17)]
    services = [{**each, "servers": ["192.0.2.1", "192.0.2.2"]} for each in services]
    assert faults(written(services=services[:16])) == []
    (fault,) = faults(written(services=services))
    assert fault.startswith("services have 1,114,112 buckets together, and nft needs some 800 MB for 1,048,576: ")


def test_two_services_of_one_place_are_refused():
    (fault,) = faults(written(services=[API, {**API, "name": "other"}]))
    assert fault.startswith("service api and service other both listen on 192.0.2.100 port 6443: ")


class Host:
    """Stands for the host, on which nothing is as it should be."""

    def program(self, _path, _runner):
        return "it cannot be run."

    def configuration(self, _path):
        return None

    def authorities(self, _path):
        return "it cannot be read."


def test_what_is_named_on_this_host_is_looked_at():
    text = with_service(check={"type": "https", "verify": True, "ca": "/etc/ca.pem"})
    assert config.parse(text, "/etc/direct.json", Host())[1] == [
        "services[0] (api).check.ca is '/etc/ca.pem': it cannot be read.",
        "nft is '/usr/sbin/nft': it cannot be run.",
    ]


keys = st.sampled_from([*API, *API["check"], "address"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([1.5, "192.0.2.1", "::1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner),
    max_leaves=12,
)


@given(values, st.sampled_from(sorted(API)))
def test_no_value_raises(value, key):
    config.parse(json.dumps({"interface": "eth0", "services": [{**API6, key: value}]}))
    config.parse(json.dumps({"interface": value, "services": value}))
