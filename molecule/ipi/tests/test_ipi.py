"""The cluster on real hosts, with either engine: one holder of each VIP, the redirect where a balancer is."""

from __future__ import annotations

import os
import time

import pytest

MASTERS = ("master1", "master2", "master3")
NODES = (*MASTERS, "worker1")
EVERYWHERE = (*NODES, "client")
NATIVE, AGENT = ("haproxy", "keepalived"), ("onprem-lb-proxy", "onprem-lb-vrrp")


@pytest.fixture(scope="module")
def hosts(request):
    """Every lab host by name."""
    import testinfra

    backend = request.config.getoption("--ansible-inventory")
    return {name: testinfra.get_host(f"ansible://{name}?ansible_inventory={backend}", sudo=True) for name in EVERYWHERE}


@pytest.fixture(scope="module")
def variables(hosts):
    return hosts["client"].ansible.get_variables()


@pytest.fixture(params=["lab_vip", "lab_vip6"])
def api(request, variables):
    return variables[request.param]


@pytest.fixture
def ingress(variables):
    return variables["lab_vip2"]


def until(condition, limit=20.0):
    """Poll until a condition holds; return whether it did."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.2)
    return False


def holders(hosts, vip, among=NODES):
    return [name for name in among if f" {vip}/" in hosts[name].check_output("ip -oneline address")]


def ask(host, address, port, scheme="http"):
    where = f"[{address}]" if ":" in address else address
    return host.run(f"curl --silent --insecure --max-time 3 {scheme}://{where}:{port}/")


def engine(host):
    """Its balancer and its router: in the scenario ipi-agent every master has become one of the agent."""
    on_masters = AGENT if os.environ.get("MOLECULE_SCENARIO_NAME") == "ipi-agent" else NATIVE
    return on_masters if host.check_output("hostname").startswith("master") else NATIVE


def redirects(host):
    return host.run("nft list table inet onprem_lb_api").rc == 0


def test_exactly_one_master_holds_the_api_and_one_node_the_ingress(hosts, api, ingress):
    assert len(holders(hosts, api)) == 1
    assert holders(hosts, api)[0] in MASTERS
    assert len(holders(hosts, ingress)) == 1


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_api_answers_through_its_vip_from_every_host_and_from_every_master_in_turn(hosts, api, name):
    seen = {ask(hosts[name], api, 6443, "https").stdout.strip() for _turn in range(6)}
    assert seen == set(MASTERS)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_router_of_the_holder_answers_through_the_ingress_vip(hosts, ingress, name):
    assert ask(hosts[name], ingress, 80).stdout.strip() == holders(hosts, ingress)[0]


@pytest.mark.parametrize("name", MASTERS)
def test_a_masters_own_address_is_its_own_api_server(hosts, variables, name):
    own = hosts[name].ansible.get_variables()["lab_address"]
    assert {ask(hosts["client"], own, 6443, "https").stdout.strip() for _turn in range(4)} == {name}


@pytest.mark.parametrize("name", MASTERS)
def test_every_master_redirects_and_no_worker(hosts, name):
    assert redirects(hosts[name])
    assert not redirects(hosts["worker1"])


@pytest.mark.parametrize("name", NODES)
def test_each_node_runs_its_own_engine_and_nothing_of_the_other(hosts, name):
    running = [unit for unit in (*NATIVE, *AGENT) if hosts[name].service(unit).is_running]
    wanted = engine(hosts[name])
    assert running == list(wanted if name in MASTERS else wanted[1:])


def test_without_a_balancer_there_is_no_redirect_and_the_node_still_reaches_the_api(hosts, api):
    name = holders(hosts, api)[0]
    host = hosts[name]
    try:
        host.check_output(f"systemctl stop {engine(host)[0]}")
        assert not redirects(host)
        assert until(lambda: holders(hosts, api) != [name])
        assert ask(host, api, 6443, "https").stdout.strip() in MASTERS
    finally:
        host.check_output(f"systemctl start {engine(host)[0]}")
    assert until(lambda: redirects(host))


def test_a_killed_balancer_leaves_no_redirect_behind_but_the_next_one_brings_it(hosts):
    host = hosts["master3"]
    balancer = engine(host)[0]
    host.check_output(f"systemctl kill --signal=KILL {balancer}")
    assert until(lambda: host.service(balancer).is_running and redirects(host))


def test_nftables_that_empties_the_ruleset_brings_ours_back(hosts):
    host = hosts["master2"]
    host.check_output("systemctl restart nftables")
    try:
        assert redirects(host)
        assert host.run("nft list table inet onprem_lb_machine_config").rc == 0
    finally:
        host.check_output(f"systemctl stop nftables && systemctl restart {engine(host)[0]} onprem-lb-machine-config")


def test_strangers_do_not_reach_the_machine_config_server(hosts, variables):
    rules = hosts["master1"].check_output("nft list table inet onprem_lb_machine_config")
    assert "tcp dport 22623" in rules
    assert variables["lab_network"] in rules


def test_the_vips_stay_while_the_balancer_is_reloaded_everywhere(hosts, api):
    before = holders(hosts, api)
    for name in MASTERS:
        hosts[name].check_output(f"systemctl reload {engine(hosts[name])[0]}")
    assert holders(hosts, api) == before


def test_the_status_pages_say_that_the_balancer_runs_and_serves(hosts):
    for port, path in ((9444, "/haproxy_ready"), (9454, "/haproxy_monitor")):
        assert hosts["master1"].run(f"curl --silent --fail http://localhost:{port}{path}").rc == 0
