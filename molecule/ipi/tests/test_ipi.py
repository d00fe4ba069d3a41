"""The cluster on real hosts, with either engine: each VIP has one holder, and a running balancer has its redirect."""

from __future__ import annotations

import os

import pytest
from support.lab import fetch, holders
from support.waiting import happens

MASTERS = ("master1", "master2", "master3")
NODES = (*MASTERS, "worker1")
EVERYWHERE = (*NODES, "client")
NO_ANSWER = 28  # curl's exit code for a timeout
NATIVE, AGENT = ("haproxy", "keepalived"), ("onprem-lb-proxy", "onprem-lb-vrrp")


@pytest.fixture(params=["lab_vip", "lab_vip6"])
def api(request, variables):
    return variables[request.param]


@pytest.fixture
def ingress(variables):
    return variables["lab_vip2"]


def engine(host):
    """Return the units of a host's balancer and router. In the scenario ipi-agent every master runs the agent."""
    on_masters = AGENT if os.environ.get("MOLECULE_SCENARIO_NAME") == "ipi-agent" else NATIVE
    return on_masters if host.check_output("hostname").startswith("master") else NATIVE


def redirects(host):
    return host.run("nft list table inet onprem_lb_api").rc == 0


def test_exactly_one_master_holds_the_api_and_one_node_the_ingress(hosts, api, ingress):
    assert len(holders(hosts, NODES, api)) == 1
    assert holders(hosts, NODES, api)[0] in MASTERS
    assert len(holders(hosts, NODES, ingress)) == 1


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_api_answers_through_its_vip_from_every_host_and_from_every_master_in_turn(hosts, api, name):
    seen = {fetch(hosts[name], api, 6443, "https").stdout.strip() for _turn in range(6)}
    assert seen == set(MASTERS)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_router_of_the_holder_answers_through_the_ingress_vip(hosts, ingress, name):
    assert fetch(hosts[name], ingress, 80).stdout.strip() == holders(hosts, NODES, ingress)[0]


@pytest.mark.parametrize("name", MASTERS)
def test_a_masters_own_address_leads_to_its_own_api_server(hosts, variables, name):
    own = hosts[name].ansible.get_variables()["lab_address"]
    assert {fetch(hosts["client"], own, 6443, "https").stdout.strip() for _turn in range(4)} == {name}


@pytest.mark.parametrize("name", MASTERS)
def test_masters_redirect_and_workers_do_not(hosts, name):
    assert redirects(hosts[name])
    assert not redirects(hosts["worker1"])


@pytest.mark.parametrize("name", NODES)
def test_each_node_runs_its_own_engine_and_nothing_of_the_other(hosts, name):
    running = [unit for unit in (*NATIVE, *AGENT) if hosts[name].service(unit).is_running]
    balancer, router = engine(hosts[name])
    assert running == ([balancer, router] if name in MASTERS else [router])


def test_without_a_balancer_there_is_no_redirect_and_the_node_still_reaches_the_api(hosts, api):
    name = holders(hosts, NODES, api)[0]
    host = hosts[name]
    try:
        host.check_output(f"systemctl stop {engine(host)[0]}")
        assert not redirects(host)
        assert happens(lambda: holders(hosts, NODES, api) != [name])
        assert fetch(host, api, 6443, "https").stdout.strip() in MASTERS
    finally:
        host.check_output(f"systemctl start {engine(host)[0]}")
    assert happens(lambda: redirects(host))


def test_the_redirect_is_back_when_a_killed_balancer_has_restarted(hosts):
    host = hosts["master3"]
    balancer = engine(host)[0]
    host.check_output(f"systemctl kill --signal=KILL {balancer}")
    assert happens(lambda: host.service(balancer).is_running and redirects(host))


def test_a_restart_of_nftables_which_flushes_the_ruleset_restores_our_tables(hosts):
    host = hosts["master2"]
    host.check_output("systemctl restart nftables")
    try:
        assert redirects(host)
        assert host.run("nft list table inet onprem_lb_machine_config").rc == 0
    finally:
        host.check_output(f"systemctl stop nftables && systemctl restart {engine(host)[0]} onprem-lb-machine-config")


@pytest.fixture
def machine_config(hosts):
    """A server on port 22623 of every master, where the machine config server serves secrets."""
    for name in MASTERS:
        hosts[name].check_output("systemd-run --collect --unit onprem-lb-secrets python3 -m http.server 22623")
    assert happens(lambda: all(hosts[name].socket("tcp://0.0.0.0:22623").is_listening for name in MASTERS))
    yield 22623
    for name in MASTERS:
        hosts[name].check_output("systemctl stop onprem-lb-secrets")


def test_only_members_reach_the_machine_config_server(hosts, variables, machine_config):
    own = hosts["master1"].ansible.get_variables()["lab_address"]
    for address in (own, variables["lab_vip"]):
        assert [name for name in NODES if fetch(hosts[name], address, machine_config).rc != 0] == []
        assert fetch(hosts["client"], address, machine_config, limit=1).rc == NO_ANSWER


def test_a_reload_of_every_balancer_moves_no_vip(hosts, api):
    before = holders(hosts, NODES, api)
    for name in MASTERS:
        hosts[name].check_output(f"systemctl reload {engine(hosts[name])[0]}")
    assert holders(hosts, NODES, api) == before


def test_the_monitors_report_that_the_balancer_runs_and_serves(hosts):
    for port, path in ((9444, "/haproxy_ready"), (9454, "/haproxy_monitor")):
        assert hosts["master1"].run(f"curl --silent --fail http://localhost:{port}{path}").rc == 0
