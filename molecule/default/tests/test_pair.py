"""The pair on real hosts: one holder, services that answer through the VIP, and no VIP where haproxy is dead."""

from __future__ import annotations

import base64
import re

import pytest
from support.lab import fetch, holders
from support.paths import GOLDEN
from support.waiting import happens

GOLDEN_FILES = sorted(path.name for path in GOLDEN.iterdir() if path.name.endswith(("haproxy.cfg", "keepalived.conf")))
BALANCERS = ("lb1", "lb2")
PORTS = (8443, 80, 443)


@pytest.fixture(params=["lab_vip", "lab_vip6"])
def vip(request, variables):
    return variables[request.param]


@pytest.fixture
def vips(variables):
    return variables["lab_vip"], variables["lab_vip6"]


def test_exactly_one_balancer_holds_the_vip(hosts, vip):
    assert len(holders(hosts, BALANCERS, vip)) == 1


@pytest.mark.parametrize("port", PORTS)
def test_the_backends_answer_through_the_vip(hosts, vip, port):
    answer = fetch(hosts["client"], vip, port)
    assert answer.rc == 0
    assert answer.stdout.strip() in ("node1", "node2")


@pytest.mark.parametrize("name", BALANCERS)
@pytest.mark.parametrize("service", ["haproxy", "keepalived"])
def test_both_services_run_and_are_enabled(hosts, name, service):
    assert hosts[name].service(service).is_running
    assert hosts[name].service(service).is_enabled


@pytest.mark.parametrize("name", BALANCERS)
def test_a_balancer_with_a_dead_haproxy_does_not_hold_a_vip(hosts, vips, name):
    other = next(balancer for balancer in BALANCERS if balancer != name)
    hosts[name].check_output("systemctl stop haproxy")
    try:
        assert happens(lambda: all(holders(hosts, BALANCERS, vip) == [other] for vip in vips))
        assert all(fetch(hosts["client"], vip, 80).rc == 0 for vip in vips)
    finally:
        hosts[name].check_output("systemctl start haproxy")
    # The first member takes the VIPs back after three advertisement intervals, and keeps them.
    assert happens(lambda: all(holders(hosts, BALANCERS, vip) == [BALANCERS[0]] for vip in vips))


def test_the_statistics_and_metrics_listen_on_localhost_only(hosts):
    metrics = hosts["lb1"].run("curl --silent --fail http://127.0.0.1:9000/metrics")
    assert "haproxy_backend_status" in metrics.stdout
    assert hosts["lb1"].run("curl --silent --fail http://127.0.0.1:9000/haproxy_stats").rc == 0
    sockets = [socket for socket in hosts["lb1"].socket.get_listening_sockets() if socket.endswith(":9000")]
    assert sockets == ["tcp://127.0.0.1:9000"]


def test_both_members_have_one_password_of_8_characters_that_only_root_can_read(hosts):
    passwords = set()
    for name in BALANCERS:
        conf = hosts[name].file("/etc/keepalived/keepalived.conf")
        assert (conf.user, conf.mode) == ("root", 0o600)
        passwords |= {line.split()[1] for line in conf.content_string.splitlines() if "auth_pass" in line}
    assert len(passwords) == 1
    assert len(passwords.pop()) == 8


@pytest.mark.parametrize("name", BALANCERS)
def test_the_runtime_socket_passes_the_listeners_on_to_the_next_process(hosts, name):
    config = hosts[name].file("/etc/haproxy/haproxy.cfg").content_string
    (path,) = re.findall(r"^ +stats socket (/\S+) .*expose-fd listeners", config, re.MULTILINE)
    assert hosts[name].file(path).is_socket


def test_a_reload_moves_no_vip(hosts, vips):
    for name in BALANCERS:
        hosts[name].check_output("systemctl reload haproxy keepalived")
    assert not happens(lambda: any(holders(hosts, BALANCERS, vip) != [BALANCERS[0]] for vip in vips), limit=2.0)


@pytest.mark.parametrize("name", BALANCERS)
def test_haproxy_logs_out_of_its_chroot(hosts, name):
    hosts[name].check_output("systemctl reload haproxy")
    stopped = r"journalctl --quiet --boot --identifier haproxy --grep '^Proxy .* stopped'"  # the worker itself says so
    assert happens(lambda: hosts[name].run(stopped).rc == 0)


@pytest.mark.parametrize("name", BALANCERS)
def test_the_firewall_is_open_for_the_services_and_closed_for_the_rest(hosts, name):
    """A server listens on port 8082, but the firewall blocks it. Otherwise the openings would prove nothing."""
    address = hosts[name].ansible.get_variables()["lab_address"]
    hosts[name].check_output("systemd-run --collect --unit onprem-lb-closed python3 -m http.server 8082")
    try:
        assert happens(lambda: hosts[name].socket("tcp://0.0.0.0:8082").is_listening)
        assert fetch(hosts["client"], address, 80).rc == 0
        assert fetch(hosts["client"], address, 8082, limit=1).rc != 0
    finally:
        hosts[name].check_output("systemctl stop onprem-lb-closed")


def test_the_real_programs_accept_the_golden_files(hosts):
    """They run in a separate namespace with the interfaces that the files name."""
    names = ("eth0", "eth1", "eth2", "ens192", "ens224")
    links = "; ".join(f"ip link add {name} type veth peer name peer-{name}" for name in names)
    assert GOLDEN_FILES
    tests = [program_test(name) for name in GOLDEN_FILES]
    tested = hosts["lb1"].run(f"unshare --net sh -c '{links}; {'; '.join(tests)}'")
    refused = [line for line in tested.stdout.splitlines() if line.startswith("refused ")]
    accepted = [line for line in tested.stdout.splitlines() if line.startswith("accepted ")]
    assert (refused, len(accepted)) == ([], len(GOLDEN_FILES)), tested.stdout + tested.stderr


def program_test(name):
    """Return shell commands that test a golden file with its program, and print the verdict.

    keepalived before 2.2.8 ends its test if a script runs as another user than root, unless it has no parent process.
    """
    text = base64.b64encode((GOLDEN / name).read_bytes()).decode()
    program = "haproxy -c -f" if name.endswith("haproxy.cfg") else "unshare --pid --fork keepalived -t -f"
    test = f"echo {text} | base64 -d > /tmp/golden; {program} /tmp/golden"
    return f"{test} && echo accepted {name} || echo refused {name}"
