"""The pair on real hosts: exactly one holder, the service through the VIP, and a dead haproxy holds nothing."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
GOLDEN_FILES = sorted(path.name for path in GOLDEN.iterdir() if path.name.endswith(("haproxy.cfg", "keepalived.conf")))
BALANCERS = ("lb1", "lb2")
PORTS = (8443, 80, 443)


@pytest.fixture(scope="module")
def hosts(request):
    """Every lab host by name."""
    import testinfra

    backend = request.config.getoption("--ansible-inventory")
    names = (*BALANCERS, "client")
    return {name: testinfra.get_host(f"ansible://{name}?ansible_inventory={backend}", sudo=True) for name in names}


@pytest.fixture(scope="module")
def variables(hosts):
    return hosts["client"].ansible.get_variables()


@pytest.fixture(params=["lab_vip", "lab_vip6"])
def vip(request, variables):
    return variables[request.param]


def has(host, address):
    return f" {address}/" in host.check_output("ip -oneline address")


def holders(hosts, vip):
    return [name for name in BALANCERS if has(hosts[name], vip)]


def until(condition, limit=20.0):
    """Poll until a condition holds; return whether it did."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.2)
    return False


def fetch(host, vip, port):
    where = f"[{vip}]" if ":" in vip else vip
    return host.run(f"curl --silent --max-time 3 http://{where}:{port}/")


def test_exactly_one_balancer_holds_the_vip(hosts, vip):
    assert len(holders(hosts, vip)) == 1


@pytest.mark.parametrize("port", PORTS)
def test_the_backends_answer_through_the_vip(hosts, vip, port):
    answer = fetch(hosts["client"], vip, port)
    assert answer.rc == 0
    assert answer.stdout.strip() in ("node1", "node2")


@pytest.mark.parametrize("name", BALANCERS)
@pytest.mark.parametrize("service", ["haproxy", "keepalived"])
def test_both_services_run_and_come_back_at_boot(hosts, name, service):
    assert hosts[name].service(service).is_running
    assert hosts[name].service(service).is_enabled


@pytest.mark.parametrize("name", BALANCERS)
def test_a_balancer_with_a_dead_haproxy_does_not_hold_the_vip(hosts, vip, name):
    other = next(balancer for balancer in BALANCERS if balancer != name)
    hosts[name].check_output("systemctl stop haproxy")
    try:
        assert until(lambda: holders(hosts, vip) == [other])
        assert fetch(hosts["client"], vip, 80).rc == 0
    finally:
        hosts[name].check_output("systemctl start haproxy")
    assert until(lambda: len(holders(hosts, vip)) == 1 and not holders_are_moving(hosts, vip))


def holders_are_moving(hosts, vip):
    """The first member takes the VIP back after three advertisements; then it stays."""
    return holders(hosts, vip) != [expected_holder(hosts, vip)]


def expected_holder(hosts, vip):
    for name in BALANCERS:
        text = hosts[name].file("/etc/keepalived/keepalived.conf").content_string
        block = text[text.index(f"vrrp_instance vip-{vip} ") :].split("}")[0]
        if "state MASTER" in block:
            return name
    raise AssertionError(f"nobody is MASTER of {vip}")


def test_two_holders_are_noticed(hosts, variables, vip):
    """The verification of the role must fail when two members have the VIP: give it to the second by hand."""
    first = expected_holder(hosts, vip)
    second = next(name for name in BALANCERS if name != first)
    width = 128 if ":" in vip else 32
    plan = {"vips": [{"address": vip}], "services": [], "targets": []}
    assert until(lambda: holders(hosts, vip) == [first])
    hosts[second].check_output(
        f"ip address add {vip}/{width} dev eth0 nodad" if width == 128 else f"ip address add {vip}/{width} dev eth0"
    )
    try:
        seen = hosts[first].ansible(
            "onprem.lb.pair_info", json.dumps({"plan": plan, "limit": 0}), check=False, become=True
        )
        assert seen["holders"][vip] == 2
        assert f"VIP {vip} has 2 holders" in seen["msg"]
    finally:
        hosts[second].check_output(f"ip address del {vip}/{width} dev eth0")


def test_the_statistics_and_metrics_are_for_the_balancer_itself_only(hosts, variables):
    metrics = hosts["lb1"].run("curl --silent --fail http://127.0.0.1:9000/metrics")
    assert "haproxy_backend_status" in metrics.stdout
    assert hosts["lb1"].run("curl --silent --fail http://127.0.0.1:9000/haproxy_stats").rc == 0
    sockets = [socket for socket in hosts["lb1"].socket.get_listening_sockets() if socket.endswith(":9000")]
    assert sockets == ["tcp://127.0.0.1:9000"]


def test_the_password_is_the_same_8_characters_and_only_root_reads_it(hosts):
    found = set()
    for name in BALANCERS:
        conf = hosts[name].file("/etc/keepalived/keepalived.conf")
        assert (conf.user, conf.mode) == ("root", 0o600)
        found |= {line.split()[1] for line in conf.content_string.splitlines() if "auth_pass" in line}
    assert len(found) == 1
    assert len(found.pop()) == 8


@pytest.mark.parametrize("name", BALANCERS)
def test_the_runtime_socket_hands_over_its_listeners(hosts, name):
    assert "expose-fd listeners" in hosts[name].file("/etc/haproxy/haproxy.cfg").content_string
    assert hosts[name].file("/run/haproxy/admin.sock").is_socket


@pytest.mark.parametrize("name", BALANCERS)
def test_a_reload_leaves_the_vip_where_it_is(hosts, vip, name):
    before = holders(hosts, vip)
    hosts[name].check_output("systemctl reload haproxy keepalived")
    assert not until(lambda: holders(hosts, vip) != before, limit=2.0)


@pytest.mark.parametrize("name", BALANCERS)
def test_the_firewall_is_open_for_the_services_and_closed_for_the_rest(hosts, variables, name):
    """Port 8082 is served, and refused: were the firewall off, the tests of the openings would prove nothing."""
    address = hosts[name].ansible.get_variables()["lab_address"]
    hosts[name].check_output("systemd-run --collect --unit onprem-lb-closed python3 -m http.server 8082")
    try:
        assert until(lambda: hosts[name].socket("tcp://0.0.0.0:8082").is_listening)
        assert fetch(hosts["client"], address, 8082).rc != 0
        assert fetch(hosts["client"], address, 80).rc == 0
    finally:
        hosts[name].check_output("systemctl stop onprem-lb-closed")


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_the_real_programs_accept_the_golden_files(hosts, name):
    """In a namespace of its own, with the interfaces that the files speak of and nothing else."""
    text = base64.b64encode((GOLDEN / name).read_bytes()).decode()
    links = "; ".join(f"ip link add {link} type veth peer name peer-{link}" for link in ("eth0", "eth1", "ens192"))
    program = "haproxy -c -f" if name.endswith("haproxy.cfg") else "keepalived -t -f"
    seen = hosts["lb1"].run(
        f"unshare --net sh -c '{links}; echo {text} | base64 -d > /tmp/golden; {program} /tmp/golden'"
    )
    assert seen.rc == 0, seen.stdout + seen.stderr
