# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct return with real nft and a real kernel: lasting connections survive what moves their buckets, or the VIP."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
from collections import Counter

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import buckets, hashing, rulesets, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import segments
from support.netns.direct import PORT, Lasting, behind_balancers
from support.netns.direct import masters as masters_at
from support.netns.links import families, skip_reason, temporary_link
from support.netns.namespaces import inside
from support.waiting import stays, until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))  # loads rulesets, as root

STRANGERS = 20
STRANGERS_PORTS = range(40000, 40000 + STRANGERS)
ALWAYS = 2  # of tcp_syncookies
IPV4, IPV6 = 0x0800, 0x86DD  # EtherTypes


@pytest.fixture(scope="module")
def the_cluster(vip):
    with behind_balancers(vip, 2) as made:
        yield made


@pytest.fixture(scope="module")
def the_masters(vip):
    with masters_at(vip) as made:
        yield made


@pytest.fixture
def cluster(the_cluster, tmp_path):
    return the_cluster.arrange(tmp_path)


@pytest.fixture
def masters(the_masters, tmp_path):
    return the_masters.arrange(tmp_path)


@families
def test_connections_outlive_a_failover_and_the_return(cluster):
    cluster.set_servers(cluster.servers(*cluster.hosts))
    lasting = Lasting(cluster)
    assert set(lasting.shares) == {host.name for host in cluster.hosts}
    cluster.fail_over()
    assert lasting.lost() == {}
    cluster.fail_over()
    assert lasting.lost() == {}


@families
def test_masters_that_are_balancers_lose_none_either(masters):
    first, second, third = masters.hosts
    masters.set_servers(masters.servers(first, second))
    lasting = Lasting(masters)
    assert set(lasting.shares) == {first.name, second.name}
    masters.set_servers(masters.servers(first, second, third))
    assert lasting.lost() == {}
    for _balancer in range(3):
        masters.fail_over()
        assert lasting.lost() == {}
    masters.set_servers(masters.servers(second, third, drains=[first]))
    assert lasting.lost() == {}
    assert first.name not in Lasting(masters).shares


@families
def test_connections_outlive_a_server_that_is_added_and_one_that_drains(cluster):
    first, second, third = cluster.hosts
    cluster.set_servers(cluster.servers(first, second))
    lasting = Lasting(cluster)
    cluster.set_servers(cluster.servers(first, second, third))
    assert lasting.lost() == {}
    newer = Lasting(cluster)
    assert third.name in newer.shares
    cluster.set_servers(cluster.servers(first, second, drains=[third]))
    assert newer.lost() == {}
    assert third.name not in Lasting(cluster).shares
    cluster.set_servers(cluster.servers(first, second))
    assert lasting.lost() == {}


@families
def test_without_a_second_chance_they_do_not(cluster):
    """What the tests above would see, if the servers' tables did nothing."""
    first, second, third = cluster.hosts
    for host in cluster.hosts:
        host.output("nft", "flush", "ruleset")
    cluster.balance(cluster.servers(first, second))
    lasting = Lasting(cluster)
    cluster.balance(cluster.servers(first, second, third))
    assert lasting.lost()


@families
def test_a_packet_is_handed_on_and_returned_once_whatever_the_servers_believe(vip, tmp_path):
    """Each server takes another one for the owner, and nobody has the connection."""
    with behind_balancers(vip) as cluster:  # on which nothing else is counted
        hosts = cluster.arrange(tmp_path).hosts
        for host, other in zip(hosts, [*hosts[1:], hosts[0]]):
            cluster.give_second_chances(cluster.servers(other), [host])
        cluster.balance(cluster.servers(hosts[0]))
        send_as_strangers(cluster)
        until(lambda: counted(hosts, "dscp") >= STRANGERS, lambda: f"{counted(hosts, 'dscp')} of {STRANGERS} arrived")
        assert counted(hosts, "dup to") == 2 * counted(hosts, "dscp") == 2 * STRANGERS


@families
def test_a_server_that_answers_with_syn_cookies_gets_its_connections_itself(cluster):
    """The other one cannot judge a cookie. It could here: the namespaces of a kernel share one secret."""
    first, second, third = cluster.hosts
    cluster.set_servers(cluster.servers(first, drains=[second, third]))
    with contextlib.ExitStack() as stack:
        for host in cluster.hosts:
            stack.callback(host.set_sysctl, "ipv4/tcp_syncookies", 1)
            host.set_sysctl("ipv4/tcp_syncookies", ALWAYS)
        lasting = Lasting(cluster)
        assert set(lasting.shares) == {first.name}
    assert lasting.lost() == {}


@families
def test_a_frame_is_handed_on_once_whatever_the_masters_believe(vip, tmp_path):
    """Each master takes the next one for the only owner. A frame has no hop limit, so it would run in circles."""
    with masters_at(vip) as masters:
        hosts = masters.arrange(tmp_path).hosts
        for host, other in zip(hosts, [*hosts[1:], hosts[0]]):
            masters.balance(masters.servers(other, drains=[each for each in hosts if each is not other]), [host])
        send_as_strangers(masters)
        until(lambda: sum(sum(steered(host).values()) for host in hosts) >= STRANGERS)
        stays(lambda: sum(sum(steered(host).values()) for host in hosts) == STRANGERS, 0.2)


@families
def test_the_kernel_hashes_a_connection_as_this_program_does(vip, tmp_path):
    with behind_balancers(vip) as cluster:  # on which nothing else is counted
        servers, (holder,) = cluster.arrange(tmp_path).servers(*cluster.hosts), cluster.balancers
        cluster.balance(servers)
        send_as_strangers(cluster)
        client = cluster.client.addresses[1 if ":" in vip else 0]
        numbers = [hashing.bucket(client, port, cluster.buckets, rulesets.SEED) for port in STRANGERS_PORTS]
        owners = Counter(buckets.table(servers, cluster.buckets)[number].owner for number in numbers)
        named = cluster.table(holder, servers).counters
        until(lambda: sum(steered(holder).values()) >= STRANGERS)
        assert owners == {named[name][0][2]: count for name, count in steered(holder).items() if count}


def send_as_strangers(cluster):
    """Have the client send segments of connections that nobody has to the holder's MAC."""
    version, own = (IPV6, 1) if ":" in cluster.vip else (IPV4, 0)
    mac = bytes.fromhex(cluster.balancers[0].mac.replace(":", ""))
    with inside(cluster.client.namespace), socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as link:
        for port in STRANGERS_PORTS:
            ends = segments.Ends(cluster.client.addresses[own], port, cluster.vip, PORT)
            link.sendto(segments.write(ends, segments.ACK, 1, 0), ("eth0", version, 0, 0, mac))


def steered(host):
    """Return the packets that a balancer has handed on, by its counters."""
    listed = json.loads(host.output("nft", "-j", "list", "counters"))["nftables"]
    return {each["counter"]["name"]: each["counter"]["packets"] for each in listed if "counter" in each}


def counted(hosts, rule):
    """Return the packets of the rules with some words."""
    lines = [line for host in hosts for line in host.output("nft", "list ruleset").splitlines() if rule in line]
    return sum(int(re.search(r"counter packets (\d+)", line)[1]) for line in lines if "counter" in line)


def test_nft_needs_less_memory_than_the_unit_has(tmp_path):
    servers = [[buckets.Server(f"10.1.{number}.{host}") for host in range(1, 4)] for number in range(64)]
    services = [rulesets.Service("192.0.2.10", 1000 + number, each, 4096) for number, each in enumerate(servers)]
    macs = {each.address: f"02:00:00:00:00:{at % 100:02d}" for pool in servers for at, each in enumerate(pool)}
    table = tmp_path / "table"
    table.write_text(rulesets.whole(rulesets.of_balancer(services, "lo", macs, "02:00:00:00:00:99")))
    with temporary_link() as link:
        command = ["ip", "netns", "exec", link.client.namespace, "nft", "-f", str(table)]
        _pid, status, used = os.wait4(subprocess.Popen(command).pid, 0)
    mebibytes = used.ru_maxrss / 1024
    assert status == 0 and settings.memory(0) / 2 < mebibytes < settings.memory(64 * 4096) / 2
