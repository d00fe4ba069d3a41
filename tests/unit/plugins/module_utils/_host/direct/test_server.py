# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a host from being a server of direct return: each obstacle is a sentence with its mend."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.server import command
from ansible_collections.onprem.lb.plugins.module_utils._host.direct import wanted
from ansible_collections.onprem.lb.plugins.module_utils._host.direct.host import Host, read
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall import ruleset
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support.firewalls import DPORT, SADDR, base, match
from support.programs import Programs

API = {"name": "api", "bind": "192.0.2.100", "port": 6443, "servers": ["192.0.2.1", "192.0.2.2"]}
API6 = {"name": "api6", "bind": "2001:db8::100", "port": 6443, "servers": ["2001:db8::1", "2001:db8::2"]}


def address(text, interface="eth0", prefix=24):
    return {"interface": interface, "address": text, "prefix": prefix, "mac": ""}


def listener(text, port=6443, program="kube-apiserver"):
    return {"address": text, "port": port, "program": program, "pid": 7, "runs_in": ""}


OWN, OWN6 = address("192.0.2.1"), address("2001:db8::1", prefix=64)
GOOD = Host(
    addresses=[OWN, OWN6, address("10.0.0.1", "eth1")],
    listeners=[listener("::")],
    defaults=[{"gateway": "192.0.2.254", "dev": "eth0"}],
    rp_filters={"all": "0", "eth0": "2"},
    nft="/usr/sbin/nft",
)


@pytest.fixture(autouse=True)
def kernel(monkeypatch):
    """A kernel that accepts every table, and has none of them."""
    monkeypatch.setattr(command, "check", lambda _settings: None)
    monkeypatch.setattr(command, "differences", lambda settings: [f"{settings.interface} differs."])


def found(*services, interface="", **host):
    return wanted.of_server({"interface": interface, "services": list(services or [API])}, GOOD._replace(**host))


def test_a_good_host_gets_a_configuration_with_its_interface_and_says_what_differs():
    faults, config, differences = found(API, API6)
    assert (faults, differences) == ([], ["eth0 differs."])
    assert json.loads(config) == {"interface": "eth0", "services": [API, API6], "nft": "/usr/sbin/nft"}


def listening(*addresses, port=6443):
    return {"listeners": [listener(each, port) for each in addresses]}


VIP_ELSEWHERE = {"addresses": [OWN, address("192.0.2.100", "eth1", 32)]}
VIP_AS_GATEWAY = {"defaults": [{"gateway": "192.0.2.100", "dev": "eth0"}]}
OTHER_PORT = ["192.0.2.1", {"address": "192.0.2.2", "port": 6444}]


@pytest.mark.parametrize(
    "host, sentence",
    [
        ({"nft": ""}, "This host has no nft(8): install the package nftables."),
        ({"defaults": []}, "direct_server_interface is empty, and this host has no default route"),
        (
            listening("192.0.2.100"),
            "kube-apiserver listens at 192.0.2.100 port 6443, the VIP of api: have it listen at",
        ),
        (listening("::", "::ffff:192.0.2.100"), "kube-apiserver listens at 192.0.2.100 port 6443, the VIP"),
        (listening(), "192.0.2.100 port 6443 (api), because nothing listens on that port: start a server at 0.0.0.0."),
        (listening("::", port=443), "192.0.2.100 port 6443 (api), because nothing listens on that port"),
        (listening("192.0.2.1"), "because kube-apiserver at 192.0.2.1 alone listens on that port"),
        ({"rp_filters": {"all": "1", "eth0": "1"}}, "net.ipv4.conf.all.rp_filter is 1, strict"),
        ({"rp_filters": {"all": "0", "eth0": "1"}}, "net.ipv4.conf.eth0.rp_filter is 1, strict"),
        ({"rp_filters": {"all": "1", "eth0": "0"}}, "Set net.ipv4.conf.eth0.rp_filter to 2."),
        (VIP_ELSEWHERE, "192.0.2.100, a VIP of api, is on eth1 of this host, and no VRRP router here has it"),
        (VIP_AS_GATEWAY, "192.0.2.100, a VIP of api, is the gateway of this host's default route"),
    ],
)
def test_each_obstacle_is_a_sentence_and_there_is_nothing_to_write(host, sentence):
    assert_refused(found(**host), sentence)


@pytest.mark.parametrize(
    "servers, sentence",
    [
        (OTHER_PORT, "the port 6444, and the service 6443"),
        (["192.0.2.1"], "direct_server_services[0] (api).servers has one: name at least two"),
        (["192.0.2.2", "192.0.2.3"], "api has the servers 192.0.2.2, 192.0.2.3, and this host has none"),
        (["192.0.2.1", "198.51.100.2"], "198.51.100.2, a server of api, is in no network of eth0"),
    ],
    ids=["port", "one", "stranger", "segment"],
)
def test_servers_that_cannot_be(servers, sentence):
    assert_refused(found({**API, "servers": servers}), sentence)


@pytest.mark.parametrize(
    "interface, sentence",
    [
        ("eth9", "direct_server_interface is 'eth9', which has no address on this host: name one of eth0, eth1."),
        ("eth1", "192.0.2.1, a server of api, is in no network of eth1: all servers need to be on one link"),
        ("a b", "direct_server_interface is 'a b': a name of letters"),
    ],
)
def test_an_interface_that_cannot_be(interface, sentence):
    assert_refused(found(interface=interface), sentence)


def test_a_server_of_ipv4_alone_does_not_answer_in_ipv6():
    assert_refused(found(API6, **listening("0.0.0.0")), "2001:db8::100 port 6443 (api6), because kube-api")


def assert_refused(answer, sentence):
    assert len([fault for fault in answer.faults if sentence in fault]) == 1, answer.faults
    assert (answer.config, answer.differences) == ("", [])


@pytest.mark.parametrize(
    "host",
    [
        {"rp_filters": {"all": "1", "eth0": "2"}},
        {"rp_filters": {}},
        {"addresses": [OWN, address("192.0.2.100", "eth0", 32)], "routed": ["192.0.2.100"]},
        {"listeners": [listener("0.0.0.0")]},
        {"listeners": [listener("::"), listener("192.0.2.100", 443)]},
    ],
    ids=["loose", "no filter", "VIP of a VRRP router", "IPv4 alone", "VIP at another port"],
)
def test_what_is_no_obstacle(host):
    assert found(**host).faults == []


def test_the_program_of_a_host_that_is_a_server_already_may_be_down():
    assert found(**listening(), is_server=True).faults == []
    assert_refused(found(**listening("192.0.2.1"), is_server=True), "kube-apiserver at 192.0.2.1 alone listens")


def test_ipv6_has_no_reverse_path_filter():
    assert found(API6, rp_filters={"all": "1"}).faults == []


def test_what_the_kernel_refuses_is_said_with_what_it_needs(monkeypatch):
    def refuse(_settings):
        raise command.Refused("/usr/sbin/nft refuses the table of second chances: syntax error.")

    monkeypatch.setattr(command, "check", refuse)
    (fault,) = found().faults
    assert fault.startswith("/usr/sbin/nft refuses") and "`socket wildcard`, of Linux 5.9 and nftables 0.9.7" in fault


def rules(*accepted):
    """Return the rules of a firewall that accepts these sources at the port, and nobody else."""
    host = base(*([match(DPORT, 6443), match(SADDR, source), {"accept": None}] for source in accepted))
    return {"rules": ruleset.parse(host.run(["nft", "-j", "-t", "list", "ruleset"])[1])}


BALANCERS = {"set": ["192.0.2.8", "192.0.2.9"]}


@pytest.mark.parametrize("accepted", [[], [BALANCERS], ["192.0.2.8", "192.0.2.9"]])
def test_a_firewall_that_lets_in_hosts_of_the_link_alone_lets_in_no_client(accepted):
    (fault,) = found(**rules(*accepted)).faults
    assert fault == (
        "The firewall of this host lets no client in at 192.0.2.100 port 6443 (api), by the chain inet filter input: "
        "balancers hand on the packets of clients as they are, so open the port to the networks of the clients."
    )


@pytest.mark.parametrize(
    "source",
    [
        {"prefix": {"addr": "10.0.0.0", "len": 8}},
        {"prefix": {"addr": "192.0.2.0", "len": 24}},
        {"set": ["192.0.2.8", "198.51.100.7"]},
        "@clients",
    ],
)
def test_whom_a_firewall_may_let_in_is_nobodys_guess(source):
    assert found(**rules(source)).faults == []


KEEPALIVED = "vrrp_instance a {\n interface eth0\n virtual_router_id 51\n virtual_ipaddress {\n 192.0.2.100/32\n }\n}\n"
ROUTES = {
    "-4": [{"dst": "default", "gateway": "192.0.2.254", "dev": "eth0"}, {"dst": "default", "dev": "ppp0"}],
    "-6": [{"dst": "default", "nexthops": [{"gateway": f"fe80::{at}", "dev": f"eth{at}"} for at in (1, 2)]}],
}


@pytest.fixture
def reader(request, monkeypatch):
    texts = {
        "/run/keepalived.loaded": "",
        "/etc/keepalived/keepalived.conf": KEEPALIVED,
        "/etc/onprem-lb-agent/vrrp.json": "",
        **getattr(request, "param", {}),
    }
    monkeypatch.setattr(Reader, "text", lambda _reader, path: texts.get(path, "2\n"))
    answers = {"ip": lambda words: (0, json.dumps(ROUTES.get(words[1], [])), ""), "nft": ""}
    programs = Programs(answers)
    return Reader(programs.run, programs.find)


def test_the_host_is_read(reader):
    host = read(reader)
    assert [(route["gateway"], route["dev"]) for route in host.defaults] == [
        ("192.0.2.254", "eth0"),
        ("", "ppp0"),
        ("fe80::1", "eth1"),
        ("fe80::2", "eth2"),
    ]
    assert (host.interface, host.routed, host.nft) == ("eth0", ["192.0.2.100"], "/usr/sbin/nft")
    assert host.rp_filters["all"] == "2"


ELSEWHERE = "/srv/keepalived.conf"
RECORD = f"{64 * 'a'}  {ELSEWHERE}\n1.5 2.5\n"
LOADED = {"/run/keepalived.loaded": RECORD, ELSEWHERE: KEEPALIVED.replace(".100", ".101")}


@pytest.mark.parametrize("reader", [LOADED], indirect=True)
def test_keepalived_may_have_another_configuration_than_the_usual_one(reader):
    assert read(reader).routed == ["192.0.2.101"]


def test_a_host_without_programs_is_read_too(monkeypatch):
    monkeypatch.setattr(Reader, "text", lambda *_asked: "")
    host = read(Reader(Programs().run, Programs().find))
    assert (host.addresses, host.defaults, host.interface, host.nft) == ([], [], "", "")
