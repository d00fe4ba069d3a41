# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`agent direct` proves the path to each server before it hands anything on to it, both families.

The first member is the balancer, and it has the VIP. The others are the servers.
"""

from __future__ import annotations

import signal
import socket

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import config
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.server import command
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import segments
from support.netns.direct import BUCKETS, PORT, SERVER, Lasting, Plane, behind_balancers
from support.netns.direct import masters as masters_at
from support.netns.links import VIP, families, skip_reason
from support.netns.namespaces import inside
from support.waiting import LIMIT_S, until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))
ETH_P_ALL = 3


@pytest.fixture(scope="module")
def the_cluster(vip):
    with behind_balancers(vip, buckets=BUCKETS) as made:
        yield made


@pytest.fixture
def cluster(the_cluster, tmp_path):
    return the_cluster.arrange(tmp_path)


@pytest.fixture
def plane(cluster, tmp_path):
    """One of whose servers the last one has no VIP when it starts."""
    forget(cluster, cluster.hosts[-1])
    made = Plane(cluster, tmp_path)
    yield made
    made.close()


def forget(cluster, host):
    host.ip("addr", "del", cluster.on_lo, "dev", "lo")


def faults(plane):
    """Return what is wrong with the paths, by the name of the server."""
    return {each["name"]: each["path_fault"] for each in plane.servers() if each["path_fault"]}


def names(*hosts):
    return {host.name for host in hosts}


def settings(cluster, plane):
    found, wrong = config.parse(plane.path.read_text())
    assert wrong == []
    return found


def half_open(host):
    return host.output("ss", "-Htn", "state", "syn-recv").splitlines()


@families
def test_a_server_without_the_vip_gets_nothing_and_status_says_what_to_do(plane, cluster):
    first, second, third = cluster.hosts
    assert plane.owners() == names(first, second)
    assert set(Lasting(cluster).shares) == names(first, second)
    assert third.mac not in plane.macs()
    (said,) = faults(plane).values()
    assert said.startswith(f"{third.name} does not answer for ") and "run the role direct_server on it" in said
    assert f"api/{said}" in plane.log
    assert plane.server(third)["state"] == "up", "its own address answers"


@families
def test_direct_server_brings_it_in_and_its_removal_takes_it_out(plane, cluster, tmp_path):
    first, second, third = cluster.hosts
    record = str(tmp_path / "record.json")
    with inside(third.namespace):
        command.apply(settings(cluster, plane), record)
    until(lambda: plane.owners() == names(first, second, third), lambda: plane.log)
    assert third.name in Lasting(cluster).shares and faults(plane) == {}
    with inside(third.namespace):
        command.remove(record)
    until(lambda: plane.owners() == names(first, second), lambda: plane.log)
    assert third.mac not in plane.macs()
    assert set(Lasting(cluster).shares) == names(first, second)


def test_without_any_path_the_programs_of_the_balancer_serve(cluster, tmp_path):
    for host in cluster.hosts:
        forget(cluster, host)
    balancer = cluster.balancers[0]
    assert balancer.python(SERVER, balancer.name, PORT).stdout.readline() == "ready\n"
    plane = Plane(cluster, tmp_path)
    try:
        assert set(Lasting(cluster).shares) == {balancer.name}
        assert set(faults(plane)) == names(*cluster.hosts) and plane.owners() == set()
        assert "api is not in the table" in plane.log
        for host in cluster.hosts:
            host.ip("addr", "add", cluster.on_lo, "dev", "lo")
        until(lambda: plane.owners() == names(*cluster.hosts), lambda: plane.log)
        assert set(Lasting(cluster).shares) == names(*cluster.hosts)
    finally:
        plane.close()


def test_the_last_servers_stay_although_they_do_not_answer_any_more(plane, cluster):
    first, second, _third = cluster.hosts
    for host in (first, second):
        forget(cluster, host)
    until(lambda: plane.report()["services"][0]["kept"], lambda: plane.log)
    assert plane.owners() and plane.owners() <= names(first, second) and plane.macs()
    assert "api has no path to a server: the last table stays." in plane.log


@families
def test_a_host_that_routes_is_no_server_although_another_one_answers(plane, cluster):
    """Its packets reach the host that has the VIP by now, which answers in its place."""
    _first, second, third = cluster.hosts
    plane.node.release(cluster.vip)
    second.take_over(cluster.vip)
    third.set_forwarding(True)
    until(lambda: "forwards packets for" in faults(plane).get(third.name, ""), lambda: faults(plane))
    until(lambda: third.name not in plane.owners(), lambda: plane.log)
    assert third.mac not in plane.macs()


def test_a_program_that_listens_elsewhere_refuses(plane, cluster):
    third = cluster.hosts[-1]
    third.ip("addr", "add", cluster.on_lo, "dev", "lo")
    until(lambda: third.name in plane.owners(), lambda: plane.log)
    plane.write(check={"type": "none"})
    plane.process.send_signal(signal.SIGHUP)
    plane.kill_server(third)
    until(lambda: "refuses connections to" in faults(plane).get(third.name, ""), lambda: faults(plane))
    until(lambda: third.name not in plane.owners(), lambda: plane.log)


def test_no_half_of_a_connection_stays_anywhere_and_no_program_hears_of_a_probe(cluster, tmp_path):
    first = cluster.hosts[0]
    plane = Plane(cluster, tmp_path, check={"type": "none"})
    try:
        accepted, reset = counted(first, "PassiveOpens"), counted(first, "AttemptFails")
        until(lambda: counted(first, "AttemptFails") >= reset + 4, lambda: plane.log)
        until(lambda: half_open(first) == [], lambda: half_open(first))
        assert counted(first, "PassiveOpens") == accepted
    finally:
        plane.close()


def counted(host, name):
    """Return a counter of TCP of a host's kernel."""
    names, values = (
        line.split() for line in host.output("cat", "/proc/net/snmp").splitlines() if line.startswith("Tcp:")
    )
    return int(dict(zip(names, values))[name])


def test_masters_that_are_balancers_answer_probes_themselves(tmp_path):
    """The second plane would hand a probe of the first one on to another server."""
    with masters_at(VIP, buckets=BUCKETS) as masters:
        masters.arrange(tmp_path)
        planes = []
        try:
            for number, host in enumerate(masters.hosts[:2]):
                folder = tmp_path / host.name
                folder.mkdir()
                planes.append(Plane(masters, folder, node=host))
                assert planes[number].owners() == names(*masters.hosts)
            last = masters.hosts[1]
            forget(masters, last)
            until(lambda: last.name not in planes[0].owners(), lambda: planes[0].log)
            assert "does not answer for" in faults(planes[0])[last.name]
        finally:
            for plane in planes:
                plane.close()


@families
def test_the_kernel_of_the_balancer_leaves_the_port_of_the_probes_alone(plane, cluster):
    """A connection of the balancer itself to the VIP cannot have the port of the probes."""
    with inside(cluster.hosts[0].namespace):
        taken = probe_port(cluster.vip)
    with inside(plane.node.namespace), pytest.raises(OSError, match="Address already in use"):
        socket.socket(socket.AF_INET6 if ":" in cluster.vip else socket.AF_INET).bind(("", taken))


def probe_port(vip):
    """Return from which port the next probe of a VIP comes to the server in whose namespace this runs."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as there:
        there.bind(("eth0", ETH_P_ALL))
        there.settimeout(LIMIT_S)
        while True:
            segment = segments.read(there.recv(256))
            if segment and segment.ends.destination == vip and segment.flags == segments.SYN:
                return segment.ends.source_port


@families
def test_a_server_whose_table_is_flushed_is_named_by_its_balancers_and_serves_on(plane, cluster):
    first, second, third = cluster.hosts
    third.ip("addr", "add", cluster.on_lo, "dev", "lo")

    def given():
        return {each["name"]: each["second_chances"] for each in plane.servers()}

    until(lambda: given() == dict.fromkeys(names(*cluster.hosts), True), lambda: f"{given()} {plane.log}")
    lasting = Lasting(cluster)
    first.output("nft", "flush", "ruleset")
    until(lambda: given() == {first.name: False, second.name: True, third.name: True}, lambda: f"{given()} {plane.log}")
    assert f"api/{first.name} hands nothing on for " in plane.log and lasting.lost() == {}
    cluster.give_second_chances(cluster.servers(*cluster.hosts), [first])
    until(lambda: given() == dict.fromkeys(names(*cluster.hosts), True), lambda: f"{given()} {plane.log}")
    assert lasting.lost() == {}


@families
def test_servers_with_another_list_than_a_balancer_are_named_until_they_have_its_own(plane, cluster):
    first, second, third = cluster.hosts
    third.ip("addr", "add", cluster.on_lo, "dev", "lo")
    cluster.give_second_chances(cluster.servers(first, second), [first])

    def given():
        return {each["name"]: each["second_chances"] for each in plane.servers()}

    until(lambda: False in given().values(), lambda: f"{given()} {plane.log}")
    assert "by another list of servers than this host has" in plane.log and plane.owners() == names(*cluster.hosts)
    cluster.give_second_chances(cluster.servers(*cluster.hosts), [first])
    until(lambda: given() == dict.fromkeys(names(*cluster.hosts), True), lambda: f"{given()} {plane.log}")


@families
def test_a_server_whose_firewall_lets_balancers_in_and_no_clients_is_named_by_what_clients_send(plane, cluster):
    first = cluster.hosts[0]
    client = cluster.client.addresses[1 if ":" in cluster.vip else 0]
    family = "ip6" if ":" in cluster.vip else "ip"
    first.output("nft", "add table inet fw; add chain inet fw in { type filter hook input priority 0; }")
    first.output("nft", f"add rule inet fw in {family} saddr {client} tcp dport {PORT} drop")

    def said():
        begin_connections(cluster)
        return faults(plane).get(first.name, "")

    until(lambda: "none of " in said() and "attempts of clients has led to a connection" in said(), lambda: plane.log)
    assert plane.server(first)["proven"] and first.name in plane.owners()
    first.output("nft", "delete table inet fw")
    assert first.name in Lasting(cluster).shares
    until(lambda: first.name not in faults(plane), lambda: plane.log)


def begin_connections(cluster):
    """Have the client begin connections, and wait for none of them."""
    with inside(cluster.client.namespace):
        for _each in range(50):
            with socket.socket(socket.AF_INET6 if ":" in cluster.vip else socket.AF_INET) as opened:
                opened.setblocking(False)
                opened.connect_ex((cluster.vip, PORT))


@families
def test_a_balancer_with_a_smaller_mtu_than_the_servers_says_so(plane, cluster):
    holder = cluster.balancers[0]
    assert plane.report()["mtu_fault"] is None
    holder.ip("link", "set", "eth0", "mtu", "1400")
    try:
        until(lambda: plane.report()["mtu_fault"], lambda: plane.log)
        said = "eth0 has an MTU of 1400, and servers take packets of 1500 bytes"
        assert said in plane.report()["mtu_fault"]
    finally:
        holder.ip("link", "set", "eth0", "mtu", "1500")
    until(lambda: plane.report()["mtu_fault"] is None, lambda: plane.log)
