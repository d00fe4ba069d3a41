"""One native member and one of the agent: each holds its VIP, and both serve."""

from __future__ import annotations

import pytest

UNITS = {"lb1": ("haproxy", "keepalived"), "lb2": ("onprem-lb-proxy", "onprem-lb-vrrp")}
FIRST = {"lab_vip": "lb1", "lab_vip2": "lb2"}


@pytest.fixture(scope="module")
def hosts(request):
    """Every lab host by name."""
    import testinfra

    backend = request.config.getoption("--ansible-inventory")
    names = (*UNITS, "client")
    return {name: testinfra.get_host(f"ansible://{name}?ansible_inventory={backend}", sudo=True) for name in names}


@pytest.mark.parametrize("vip", FIRST)
def test_each_vip_is_where_it_belongs_and_nowhere_else(hosts, vip):
    address = hosts["client"].ansible.get_variables()[vip]
    held = [name for name in UNITS if f" {address}/" in hosts[name].check_output("ip -oneline address")]
    assert held == [FIRST[vip]]


@pytest.mark.parametrize("vip", FIRST)
@pytest.mark.parametrize("port", [8443, 80, 443])
def test_the_backends_answer_through_both(hosts, vip, port):
    address = hosts["client"].ansible.get_variables()[vip]
    answer = hosts["client"].run(f"curl --silent --max-time 3 http://{address}:{port}/")
    assert answer.rc == 0 and answer.stdout.strip() in ("node1", "node2")


def test_a_client_stays_with_one_server_through_either(hosts):
    variables = hosts["client"].ansible.get_variables()
    for vip in FIRST:
        answers = {hosts["client"].check_output(f"curl --silent http://{variables[vip]}:443/") for _try in range(5)}
        assert len(answers) == 1


@pytest.mark.parametrize("name", UNITS)
def test_each_runs_its_own_engine_and_nothing_of_the_other(hosts, name):
    for host, units in UNITS.items():
        for unit in units:
            assert hosts[name].service(unit).is_running == (host == name)
