"""A pair on hosts without packages: the agent runs, nothing is installed, and each daemon has few rights."""

from __future__ import annotations

import re

import pytest
from support.lab import fetch, holders

BALANCERS = ("lb1", "lb2")
PORTS = (8443, 80, 443)
# By daemon: its capabilities, as the bits of capability(7).
DAEMONS = {"onprem-lb-proxy": 0x400, "onprem-lb-vrrp": 0x807000}
# As systemd-analyze(1) rates a unit, from 0 to 10. Raw and packet sockets, addresses, real-time scheduling and the view
# of other processes are what a router is for, and cost it 0.9.
MAX_EXPOSURE = {"onprem-lb-proxy": 2.0, "onprem-lb-vrrp": 2.5}


@pytest.fixture(params=["lab_vip", "lab_vip6"])
def vip(request, variables):
    return variables[request.param]


def test_exactly_one_balancer_holds_the_vip(hosts, vip):
    assert len(holders(hosts, BALANCERS, vip)) == 1


@pytest.mark.parametrize("port", PORTS)
def test_the_backends_answer_through_the_vip(hosts, vip, port):
    answer = fetch(hosts["client"], vip, port)
    assert answer.rc == 0 and answer.stdout.strip() in ("node1", "node2")


@pytest.mark.parametrize("name", BALANCERS)
def test_nothing_was_installed(hosts, name):
    assert not hosts[name].package("haproxy").is_installed
    assert not hosts[name].package("keepalived").is_installed


@pytest.mark.parametrize("name", BALANCERS)
@pytest.mark.parametrize("daemon", DAEMONS)
def test_each_daemon_is_enabled_and_runs_as_its_own_user_with_its_own_capabilities_only(hosts, name, daemon):
    service = hosts[name].service(daemon)
    assert service.is_running and service.is_enabled
    (process,) = hosts[name].process.filter(comm=daemon)
    assert process.user == daemon
    status = dict(
        line.split(":", 1) for line in hosts[name].check_output(f"cat /proc/{process.pid}/status").splitlines()
    )
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == DAEMONS[daemon]
    assert status["NoNewPrivs"].strip() == "1"


@pytest.mark.parametrize("name", BALANCERS)
@pytest.mark.parametrize("daemon", MAX_EXPOSURE)
def test_systemd_rates_each_unit_as_confined(hosts, name, daemon):
    report = hosts[name].check_output(f"systemd-analyze security --no-pager {daemon}.service")
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+) ", report)
    assert float(exposure[1]) <= MAX_EXPOSURE[daemon], report


@pytest.mark.parametrize("name", BALANCERS)
def test_the_checks_of_servers_have_no_capability(hosts, name):
    (process,) = hosts[name].process.filter(comm="proxy-checks")
    status = hosts[name].check_output(f"cat /proc/{process.pid}/status")
    assert re.search(r"^CapEff:\s0+$", status, re.MULTILINE), status


@pytest.mark.parametrize("name", BALANCERS)
@pytest.mark.parametrize("daemon", DAEMONS)
def test_the_kernel_is_asked_to_end_other_processes_first(hosts, name, daemon):
    """systemd ignores that a container may not ask for it."""
    assert hosts[name].check_output(f"systemctl show --property=OOMScoreAdjust {daemon}") == "OOMScoreAdjust=-900"


@pytest.mark.parametrize("name", BALANCERS)
def test_only_root_and_the_router_read_the_password(hosts, name):
    file = hosts[name].file("/etc/onprem-lb-agent/vrrp.json")
    assert (file.user, file.group, file.mode) == ("root", "onprem-lb-vrrp", 0o640)
