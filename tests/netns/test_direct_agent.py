# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`agent direct` on a link with real nft, real servers and connections that last, both families.

The first member is the balancer, and the other three are the servers.
"""

from __future__ import annotations

import functools
import os
import signal

import pytest
from support.netns.direct import BUCKETS, TABLE, Lasting, Plane, behind_balancers, running_plane
from support.netns.links import families, skip_reason
from support.waiting import LIMIT_S, until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))


@pytest.fixture(scope="module")
def the_cluster(vip):
    with behind_balancers(vip, buckets=BUCKETS) as made:
        yield made


@pytest.fixture
def cluster(the_cluster, tmp_path):
    return the_cluster.arrange(tmp_path)


@pytest.fixture
def plane(cluster, tmp_path):
    with running_plane(cluster, tmp_path) as made:
        yield made


@pytest.fixture
def unchecked(cluster, tmp_path):
    """One without checks, so that nothing but the plane itself wants to know the MACs."""
    made = Plane(cluster, tmp_path, check={"type": "none"})
    yield made
    made.close()


def names(*hosts):
    return {host.name for host in hosts}


@families
def test_a_server_that_dies_is_out_of_the_table_at_once(plane, cluster):
    first, second, third = cluster.hosts
    lasting = Lasting(cluster)
    assert plane.owners() == set(lasting.shares) == names(first, second, third)
    plane.kill_server(third)
    until(lambda: third.mac not in plane.macs(), lambda: plane.log)
    report = until(lambda: plane.table(transactions=3), lambda: plane.log)
    assert report["whole"] == 1, "a change replaces elements, and not the table"
    assert plane.owners() == names(first, second) and plane.macs() == {first.mac, second.mac}
    assert set(lasting.lost()) <= {"closed", "ConnectionResetError"}
    assert set(Lasting(cluster).shares) == names(first, second)


def test_living_servers_lose_no_connection_when_another_one_dies(plane, cluster):
    first, second, third = cluster.hosts
    assert plane.order("maint", third) == 0
    lasting = Lasting(cluster)
    assert set(lasting.shares) == names(first, second)
    assert plane.order("ready", third) == 0
    assert plane.owners() == names(first, second, third)
    assert lasting.lost() == {}
    plane.kill_server(third)
    until(lambda: plane.macs() == {first.mac, second.mac}, lambda: plane.log)
    assert lasting.lost() == {}


def test_the_last_servers_stay_in_the_table_when_all_die_and_it_says_so(plane, cluster):
    before = plane.owners()
    for host in cluster.hosts:
        plane.kill_server(host)
    until(lambda: plane.report()["services"][0]["kept"], lambda: plane.log)
    assert until(lambda: plane.owners() < before and plane.owners(), lambda: plane.log)
    assert plane.macs() and "no server that is up: the last table stays." in plane.log
    assert plane.down_file.read_text() == "0\n", "the VIP would find the same servers elsewhere"


def test_a_table_that_somebody_flushes_is_back(plane, cluster):
    lasting = Lasting(cluster)
    for _again in range(2):
        before = plane.report()["table"]["restored"]
        cluster.balancers[0].output("nft", "flush", "ruleset")
        until(functools.partial(plane.table, restored=before + 1, in_force=True), lambda: plane.log)
        assert plane.macs() == {host.mac for host in cluster.hosts}
    assert lasting.lost() == {}
    assert "Another program has changed or removed the table" in plane.log
    assert plane.down_file.read_text() == "0\n"


def test_an_element_that_somebody_changes_is_as_it_was(plane, cluster):
    cluster.balancers[0].output("nft", "flush", "map", *TABLE, "servers_0_macs")
    until(lambda: plane.table(restored=1, in_force=True), lambda: plane.log)
    assert plane.macs() == {host.mac for host in cluster.hosts}


def test_the_tables_of_others_are_none_of_its_business(plane, cluster):
    cluster.balancers[0].output("nft", "add table ip others; delete table ip others")
    cluster.balancers[0].output("nft", "flush", "map", *TABLE, "servers_0_macs")
    until(lambda: plane.table(restored=1, in_force=True), lambda: plane.log)
    assert plane.table(whole=2), "the other tables would have counted before"


@families
def test_macs_that_nobody_knows_are_asked_for(unchecked, cluster):
    until(lambda: unchecked.macs() == {host.mac for host in cluster.hosts}, lambda: unchecked.log)
    assert set(Lasting(cluster).shares) == names(*cluster.hosts)


@families
def test_the_table_follows_a_mac_that_changes(plane, cluster):
    host = cluster.hosts[0]
    new = "02:00:00:00:01:01"
    host.ip("link", "set", "eth0", "address", new)
    until(lambda: host.announce(cluster.own(host), new) or new in plane.macs(), lambda: plane.log)
    assert plane.macs() == {new, *(other.mac for other in cluster.hosts[1:])}
    until(lambda: host.name in plane.owners(), lambda: plane.log)
    assert set(Lasting(cluster).shares) == names(*cluster.hosts)


def test_a_bad_file_is_refused_and_the_old_one_stays_in_force(plane, cluster):
    plane.write(port=0)
    plane.process.send_signal(signal.SIGHUP)
    until(lambda: "The reload is refused" in plane.log)
    assert "services[0] (api).port is 0: a port from 1 to 65535 is required." in plane.report()["config_fault"]
    assert set(Lasting(cluster).shares) == names(*cluster.hosts)
    plane.write(servers=[{"name": host.name, "address": cluster.own(host)} for host in cluster.hosts[:2]])
    plane.process.send_signal(signal.SIGHUP)
    until(lambda: plane.owners() == names(*cluster.hosts[:2]), lambda: plane.log)
    assert plane.report()["config_fault"] is None


def test_another_number_of_buckets_is_refused(plane):
    plane.write(buckets=8192)
    plane.process.send_signal(signal.SIGHUP)
    until(lambda: f"api has 8192 buckets, and {BUCKETS} are in force" in plane.log)


def test_a_drained_server_gets_no_new_connection_and_loses_none(plane, cluster, capsys):
    first, second, third = cluster.hosts
    lasting = Lasting(cluster)
    for host in (first, third):
        assert plane.order("drain", host) == 0
        assert host.name not in plane.owners()
        assert lasting.lost() == {}
        assert host.name not in Lasting(cluster).shares
        assert plane.order("ready", host) == 0
        assert lasting.lost() == {}
    assert f"api/{first.name} is drain.\napi/{first.name} is up.\n" in capsys.readouterr().out
    assert plane.order("drain", cluster.client) == 1


def test_what_each_server_gets_is_counted(plane, cluster):
    Lasting(cluster)

    def counted():
        packets = {server["name"]: server["packets"] for server in plane.report()["services"][0]["servers"]}
        return packets if all(packets.values()) else None

    packets = until(counted, lambda: plane.log)
    assert sum(packets.values()) >= 300  # of 100 connections


def test_a_stop_leaves_nothing(plane, cluster):
    plane.stop()
    assert not plane.has_table() and not os.path.exists(plane.socket)
    assert cluster.balancers[0].processes_inside() == []


def test_a_stop_has_the_vip_move_first_unless_it_is_asked_again(plane):
    plane.stop()
    plane.write(pause=60)
    plane.start()
    assert plane.down_file.read_text() == "0\n"
    plane.process.send_signal(signal.SIGTERM)
    until(lambda: plane.down_file.read_text() == "1\n")
    plane.process.send_signal(signal.SIGUSR2)  # too late for another version
    assert plane.has_table(), "a VIP that is still here has its table"
    plane.stop()
    assert not plane.has_table()


def test_a_restart_for_another_version_keeps_the_table_and_the_connections(plane, cluster):
    lasting = Lasting(cluster)
    plane.process.send_signal(signal.SIGUSR2)
    assert plane.process.wait(LIMIT_S) == 0
    assert plane.has_table() and lasting.lost() == {}
    written = os.stat(plane.down_file)
    assert plane.down_file.read_text() == "0\n"
    plane.start()
    assert lasting.lost() == {} and plane.owners() == names(*cluster.hosts)
    assert plane.down_file.read_text() == "0\n"
    assert os.stat(plane.down_file).st_mtime_ns == written.st_mtime_ns, "a 1 in between would move the VIP"


def test_orders_outlast_a_restart(plane, cluster):
    first, second, _third = cluster.hosts
    plane.order("drain", first)
    plane.order("maint", second)
    plane.order("ready", second)
    plane.process.send_signal(signal.SIGUSR2)
    assert plane.process.wait(LIMIT_S) == 0
    plane.start()
    assert plane.server(first)["order"] == "drain"
    assert plane.owners() == names(*cluster.hosts) - {first.name}


def test_what_was_killed_is_followed_by_one_that_replaces_its_table(plane, cluster):
    lasting = Lasting(cluster)
    plane.process.kill()
    plane.process.wait()
    assert lasting.lost() == {}
    plane.start()
    assert lasting.lost() == {} and plane.owners() == names(*cluster.hosts)
