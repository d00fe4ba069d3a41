# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two listeners at one place are refused, whichever part of haproxy.cfg they are in: haproxy itself accepts them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy, raw_binds
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import pair

WEB = {"name": "web", "port": 443, "servers": ["192.0.2.31"]}


def faults(services=(WEB,), monitors=(), stats=None, **tuning):
    settings = {"services": list(services), "monitors": list(monitors), "stats": stats or {}, "tuning": tuning}
    return haproxy.model(settings, [], "lb1")["faults"]


def test_a_bind_with_tls_beside_the_services_own_is_refused():
    """The kernel would divide the connections: those without TLS at the one, those with it at the other."""
    (fault,) = faults([{**WEB, "frontend_lines": ["bind *:443 ssl crt /etc/web.pem"]}])
    assert fault.startswith(
        "service web and 'bind *:443' of haproxy_services[0] (web).frontend_lines both listen on * port 443: "
    )
    (fault,) = _pair.plan(pair(services=[{**WEB, "frontend_lines": ["bind :443 ssl crt /etc/web.pem"]}])).faults
    assert "'bind :443' of pair_services[0] (web).frontend_lines both listen on * port 443" in fault


@pytest.mark.parametrize(
    "line",
    [
        "bind *:443",
        "  bind 0.0.0.0:443 ssl crt /x",
        "bind :443",
        "bind ipv4@:443",
        "bind ipv4@192.0.2.10:443",
        "bind 192.0.2.10:80,192.0.2.10:443",
        "bind 192.0.2.10:400-500",
        "bind :::443",
        "bind [::]:443 v4v6",
        "stats socket 127.0.0.1:443",
        "stats  socket  ipv4@127.0.0.1:443 level admin",
        'bind "*:443"',
    ],
)
def test_a_raw_line_that_listens_where_a_service_does_is_refused(line):
    (fault,) = faults(extra_lines=["listen more", line])
    assert "service web and '" in fault and "of haproxy_extra_lines both listen on " in fault


@pytest.mark.parametrize(
    "line",
    [
        "bind *:8443",
        "bind 192.0.2.10:444-500",
        "bind :::443 v6only",
        "bind ipv6@:443",
        "bind [2001:db8::1]:443",
        "bind /run/haproxy.sock",
        "bind abns@443",
        "bind quic4@:443 ssl crt /x",
        "bind :443 interface eth1",
        "bind :443 thread 1",
        "bind :443 namespace other",
        "dgram-bind :443",
        "server one 192.0.2.1:443",
        "peer one 192.0.2.1:443",
        "bind web.example:443",
        "bind ${ADDRESS}:443",
        "bind",
        "# bind *:443",
        "option forwardfor # bind *:443",
        "bind-process 443",
        "stats socket /run/haproxy/admin.sock",
    ],
)
def test_a_raw_line_that_listens_elsewhere_is_none_of_our_business(line):
    assert faults(extra_lines=["listen more", line]) == []


def test_raw_lines_of_every_section_count_and_meet_each_other():
    (fault,) = faults(global_lines=["stats socket 127.0.0.1:7000"], extra_lines=["listen more", "bind :7000"])
    first, second = "'stats socket 127.0.0.1:7000' of haproxy_global_lines", "'bind :7000' of haproxy_extra_lines"
    assert (
        fault == f"{first} and {second} both listen on * port 7000: change a port or bind them to different addresses."
    )


def test_monitors_and_the_statistics_meet_raw_lines_too():
    lines = ["listen more", "bind :9444,:9000"]
    found = faults(monitors=[{"name": "ready", "port": 9444}], extra_lines=lines)
    assert [fault.partition(" and ")[0] for fault in found] == ["monitor ready", "the statistics page"]
    assert faults(stats={"enabled": False}, extra_lines=["listen more", "bind :9000"]) == []


def test_one_port_on_two_addresses_is_good_for_the_statistics_too():
    assert faults([{**WEB, "port": 9000, "bind": ["192.0.2.10"]}]) == []


def test_addresses_of_one_service_that_overlap_are_refused():
    (fault,) = faults([{**WEB, "bind": ["*", "192.0.2.10"]}])
    assert fault == "service web: bind has * and 192.0.2.10, which overlap: leave one out."


def test_the_firewall_is_opened_for_what_other_hosts_may_reach():
    stats = {"address": "192.0.2.1", "user": "ops", "password": "Vq8-not-known"}
    monitors = [{"name": "ready", "port": 9444}, {"name": "own", "port": 9445, "bind": ["127.0.0.1", "::1"]}]
    lines = ["listen more", "bind 127.0.0.1:7000", "bind :::7001"]
    tuning = {"extra_lines": lines}

    def ports(**stats):
        settings = {"services": [WEB], "monitors": monitors, "stats": stats, "tuning": tuning}
        return haproxy.model(settings, [], "lb1")["ports"]

    assert ports() == [7001, 9444]
    assert ports(**stats) == [7001, 9000, 9444]


def test_a_range_of_ports_is_every_port_of_it():
    assert [raw.claim.place.port for raw in raw_binds.of_lines(["bind :80-82"], "x")] == [80, 81, 82]


PEERS = ["peers mine", "  peer lb1 192.0.2.1:10000", "  peer lb2 192.0.2.2:10000", "  peer here 127.0.0.1:10001"]
SYSLOG = ["log-forward syslog", "  dgram-bind :514", "  bind :1514", "  log 192.0.2.9:514 local0"]


def opened(*lines, services=(WEB,)):
    settings = {"services": list(services), "monitors": [], "stats": {}, "tuning": {"extra_lines": list(lines)}}
    found = haproxy.model(settings, [], "lb1")
    assert found["faults"] == []
    return found["ports"], found["restricted_ports"]


def test_the_firewall_is_opened_for_every_kind_of_listener_of_raw_lines():
    assert opened(*SYSLOG) == ([1514, "514/udp"], [])
    assert opened("frontend more", "bind :8001 interface eth1", "bind :8002 thread 1") == ([8001, 8002], [])
    assert opened("frontend more", "bind quic4@:8443 ssl crt /x") == (["8443/udp"], [])
    assert opened("frontend more", "bind :8003 namespace other") == ([], [])
    assert opened("frontend more", "bind udp@:514") == (["514/udp"], [])


def test_peers_of_raw_lines_are_let_in_alone():
    both = ["192.0.2.1", "192.0.2.2"]
    assert opened(*PEERS) == ([], [{"port": 10000, "networks": both}])
    listening = ["peers mine", "bind :10000", "server lb1", "server lb2 192.0.2.2:10000"]
    assert opened(*listening) == ([], [{"port": 10000, "networks": both[1:]}])
    assert opened("peers mine", "bind :10000", "server lb1", "server lb2 lb2.example:10000") == ([10000], [])
    assert opened(*PEERS, "backend other", "server lb3 192.0.2.3:10000") == ([], [{"port": 10000, "networks": both}])
    more = ["peers more", "peer lb1 192.0.2.1:10002", "peer lb3 [2001:db8::3]:10000"]
    assert [each["port"] for each in opened(*PEERS, *more)[1]] == [10000, 10002]


@pytest.mark.parametrize(
    "lines, words",
    [
        (["peers mine", "peer lb1 192.0.2.1:443"], "service web and 'peer lb1 192.0.2.1:443' of haproxy_extra_lines"),
        (["log-forward a", "bind :443"], "service web and 'bind :443' of haproxy_extra_lines"),
        (["log-forward a", "dgram-bind :514", "log-forward b", "dgram-bind 192.0.2.1:514"], "'dgram-bind :514' of"),
        (
            ["listen a", "bind :81 interface eth1", "listen b", "bind :81 interface eth1 ssl"],
            "'bind :81' of haproxy_extra_lines: bind has",
        ),
    ],
)
def test_two_listeners_of_one_kind_meet(lines, words):
    (fault,) = faults(extra_lines=lines)
    assert fault.startswith(words)


@pytest.mark.parametrize(
    "lines",
    [
        ["log-forward a", "bind :514", "log-forward b", "dgram-bind :514"],
        ["listen a", "bind :81 interface eth1", "listen b", "bind :81 interface eth2", "listen c", "bind :81"],
        ["listen a", "bind :81 thread 1", "bind :81 thread 2"],
        ["listen a", "bind :0", "bind :99999", "bind :9-8", "dgram-bind", "peers", "peer a"],
    ],
)
def test_two_listeners_of_different_kinds_do_not_meet(lines):
    assert faults(extra_lines=lines) == []
