# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The peers of HAProxy: who they are, where they listen, who may connect, and that nobody who only checks is limited.

That a table is there after a failover and a reload is played in tests/netns/test_stick_tables.py.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy as _haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import plan as _plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import pair
from support.rendering import haproxy, haproxy_model

WEB = {"name": "web", "port": 80, "servers": ["192.0.2.31"]}
STICKY, LIMITED = {**WEB, "sticky": {"by": "source"}}, {**WEB, "rate_limit": {"connections": 9}}
COOKIE = {**WEB, "mode": "http", "sticky": {"by": "cookie"}}
BOTH = [{"name": "lb1", "address": "192.0.2.1"}, {"name": "lb2", "address": "2001:db8::2"}]


def faults(*services, **variables):
    return haproxy_model(services, **variables)["faults"]


def of_pair(*services, **settings):
    found = _pair.plan(pair(services=list(services), **settings))
    assert found.faults == []
    return found.members


def lines(text, *words):
    return [line.strip() for line in text.splitlines() if line.split()[:1] and line.split()[0] in words]


@pytest.mark.parametrize("service", [STICKY, LIMITED])
def test_a_host_alone_is_its_own_peer_so_that_a_reload_keeps_its_tables(service):
    text = haproxy([service])
    assert lines(text, "localpeer", "peers", "peer") == [
        "localpeer lb1",
        "peers haproxy_peers",
        "peer lb1 127.0.0.1:10000",
    ]
    assert all(line.endswith(" peers haproxy_peers") for line in lines(text, "stick-table"))


@pytest.mark.parametrize("services", [[WEB], [COOKIE], []])
def test_without_a_table_nobody_is_a_peer(services):
    assert "peer" not in haproxy(services, haproxy_peers=BOTH)


def test_without_a_port_nobody_is_a_peer():
    text = haproxy([STICKY], haproxy_peers=BOTH, haproxy_peers_port=0)
    assert "peer" not in text and lines(text, "stick-table")


def test_haproxy_takes_the_peers_of_both_families():
    text = haproxy([STICKY], haproxy_peers=BOTH, haproxy_peers_port=1024)
    assert lines(text, "peer") == ["peer lb1 192.0.2.1:1024", "peer lb2 [2001:db8::2]:1024"]
    command = [shutil.which("haproxy"), "-c", "-f", "/dev/stdin"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and "WARNING" not in checked.stderr, checked.stderr


@pytest.mark.parametrize(
    "given, said",
    [
        ({"peers": "lb2"}, "haproxy_peers is 'lb2': a list"),
        ({"peers": ["lb2"]}, "haproxy_peers[0] is 'lb2': a mapping"),
        ({"peers": [{"name": "lb1"}]}, "haproxy_peers[0] (lb1) lacks 'address': add it."),
        ({"peers": [{**BOTH[0], "name": "a\nb"}]}, "haproxy_peers[0].name is 'a\\nb': "),
        ({"peers": [{**BOTH[0], "name": 5}]}, "haproxy_peers[0].name is 5: a string is required."),
        (
            {"peers": [{**BOTH[0], "address": "lb1.example"}]},
            "haproxy_peers[0] (lb1).address is 'lb1.example': an IPv4",
        ),
        ({"peers": [{**BOTH[0], "port": 1}]}, "haproxy_peers[0] (lb1) has the unknown key 'port'"),
        ({"peers": BOTH[1:]}, "haproxy_peers lacks lb1: add it with its own address, or leave all of them out."),
        ({"peers": [*BOTH, BOTH[1]]}, "haproxy_peers has the name 'lb2' twice: give each its own."),
        ({"peers": [BOTH[0], {**BOTH[0], "name": "lb2"}]}, "haproxy_peers has the address 192.0.2.1 twice: name each"),
        ({"peers_port": -1}, "haproxy_peers_port is -1: a port (0 for none) from 0 to 65535 is required."),
        ({"peers_port": 80}, "haproxy_peers_port is 80, where service web listens: choose another port."),
        (
            {"peers_port": 7000, "global_lines": ["stats socket :7000"]},
            "haproxy_peers_port is 7000, where 'stats socket",
        ),
        (
            {"global_lines": ["localpeer me"]},
            "haproxy_global_lines: line 1 is a localpeer, and this host is lb1: leave it",
        ),
    ],
)
def test_what_no_host_could_be_or_have_is_refused_in_one_sentence(given, said):
    found = faults(STICKY, **{f"haproxy_{key}": value for key, value in given.items()})
    assert found and found[0].startswith(said), found


def test_a_port_that_another_program_has_is_refused():
    taken = [{"port": 10000, "address": "0.0.0.0", "program": "webmin", "pid": 7}]
    settings = _haproxy.settings_of({"services": [STICKY]})
    (fault,) = _haproxy.model(settings, taken, "lb1")["faults"]
    assert fault.startswith("lb1: port 10000 of service haproxy_peers is already taken by webmin (pid 7): ")


def test_the_members_of_a_pair_are_peers_of_each_other_under_the_names_of_the_inventory():
    members = of_pair(STICKY)
    for name, member in members.items():
        data = _plan.as_data(member)
        about = handed.About("pair", {}, "", {}, waits=False, before=False)
        given = handed.to_components(data, about)["haproxy"]["settings"]
        model = _haproxy.model(_haproxy.settings_of({**given, "services": _plan.planned(given["services"])}), [], name)
        assert model["faults"] == [] and model["peers"] == {
            "local": name,
            "members": [{"name": "lb1", "address": "192.0.2.1"}, {"name": "lb2", "address": "192.0.2.2"}],
            "port": 10000,
        }


def test_the_firewall_is_open_for_the_members_alone_and_each_must_listen():
    for member in of_pair(STICKY, peers_port=1024).values():
        assert member.firewall.restricted_ports == [{"port": 1024, "networks": ["192.0.2.1", "192.0.2.2"]}]
        assert member.firewall.ports == [80]
        assert {"name": "haproxy_peers", "port": 1024} in member.expected.services
        assert len(member.expected.peered) == 1 and member.expected.peered[0][1] == 1024
    for services, port in (([WEB], 1024), ([COOKIE], 1024), ([STICKY], 0)):
        for member in of_pair(*services, peers_port=port).values():
            assert member.firewall.restricted_ports == [] and not member.balancer.peers
            assert member.expected.peered == []


@pytest.mark.parametrize(
    "service",
    [
        {**STICKY, "port": 10000},
        {**STICKY, "port": 10000, "bind": ["192.0.2.10"]},
        {**STICKY, "frontend_lines": ["bind :10000"]},
    ],
)
def test_a_port_of_a_pair_is_for_one_thing_alone(service):
    (fault,) = _pair.plan(pair(services=[service])).faults
    assert fault.startswith("pair_peers_port is 10000, where ") and fault.endswith(" listens: choose another port.")


def test_members_that_ask_whether_a_service_answers_are_never_limited():
    for member in of_pair({**LIMITED, "rate_limit": {"connections": 9, "except": ["198.51.100.0/24"]}}).values():
        (service,) = member.balancer.services
        assert service["rate_limit"]["except"] == ["198.51.100.0/24", "192.0.2.1", "192.0.2.2", "192.0.2.10"]


def test_an_address_that_the_host_lacks_is_refused_as_haproxy_could_not_start_with_it():
    settings = _haproxy.settings_of({"services": [STICKY], "peers": BOTH})

    def found(*addresses):
        return _haproxy.model(settings, [], "lb1", [{"address": each} for each in addresses])["faults"]

    assert found("127.0.0.1", "192.0.2.1") == found() == []
    assert found("127.0.0.1", "192.0.2.7") == [
        "haproxy_peers has 192.0.2.1 for lb1, which has no such address: name one that it has."
    ]


OWN = ["peers mine", "    peer lb1 127.0.0.1:1000", "    peer lb2 192.0.2.2:1000"]


@pytest.mark.parametrize(
    "given, services, sentence",
    [
        (OWN, [STICKY], None),
        (OWN, [WEB], None),
        ([line.replace("peer lb", "server LB") for line in OWN], [WEB], None),
        ([line.replace("peer lb", "server lb") for line in OWN], [STICKY], None),
        ([line.replace("lb1", "host1") for line in OWN], [STICKY], "'peers mine' without a peer lb1, as this host is"),
        (["peers mine", "backend x", "    server lb1 192.0.2.1:80"], [STICKY], "'peers mine' without a peer lb1"),
        (["peers haproxy_peers", *OWN[1:]], [STICKY], "'peers haproxy_peers', which the services have, too: rename"),
        (["peers haproxy_peers", *OWN[1:]], [WEB], None),
    ],
)
def test_the_users_own_peers_stay_as_they_are_or_are_refused(given, services, sentence):
    found = faults(*services, haproxy_extra_lines=given)
    assert [sentence in each for each in found] == ([True] if sentence else [])
    assert faults(*services, haproxy_extra_lines=given, haproxy_peers_port=0) == []
