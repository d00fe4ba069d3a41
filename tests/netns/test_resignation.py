# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The resignation for a real keepalived that was killed, heard by a real keepalived."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import ip
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.netns.keepaliveds import Cluster
from support.netns.links import skip_reason
from support.netns.resignations import LONG, resign
from support.plans.pairs import VRRP_KINDS, member
from support.waiting import until

VIP, OTHER = "192.0.2.10", "192.0.2.77"


def cluster_of(tmp_path, interval=1, **settings):
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    plan = pair.plan([member(1, **settings), member(2, **settings)])
    assert not plan.faults, plan.faults
    for instance in (each for planned in plan.members.values() for each in planned.router.instances):
        instance["advert_interval"] = interval
    return Cluster(plan, tmp_path, threading.Event())


def held_by(cluster, name, vip):
    """Wait until a member holds a VIP. Where the interval is LONG, it has not waited for Active_Down_Interval."""
    assert cluster.settle({vip: name}), cluster.logs()


def have_held(cluster, name, vip, peer):
    """Have a member hold a VIP at an interval that is LONG: once it listens, its peer resigns."""
    log, instances = cluster.folder / name / "log", cluster.plan.members[name].router.instances
    until(lambda: log.read_text().count("Entering BACKUP STATE") >= len(instances), cluster.logs)
    text = (cluster.folder / peer / "keepalived.conf").read_text()
    until(lambda: resign(cluster.nodes[peer], text, vip) or cluster.settle({vip: name}, LONG / 2), cluster.logs)
    await_hook(cluster, name)


def await_hook(cluster, name):
    """Wait until the hook that keepalived started when it became Backup has ended: it may advertise, too."""
    until(lambda: len(cluster.nodes[name].processes_inside()) == len(["keepalived", "its VRRP process"]))


def sent_by(cluster, name, since):
    """Return what a member sent since then, as its peers read it, and the IP headers."""
    frames = [each.packet for each in cluster.recorder.advertisements if each.member == name and each.at >= since]
    datagrams = [ip.read(frame, ip.IPV6 if frame[0] >> 4 == 6 else ip.IPV4) for frame in frames]
    return [(packet.decode(each.message, each.source, each.destination), each) for each in datagrams]


def sent_at_the_end(cluster, name, since):
    """Return what a member sent from its resignation on: until it is stopped, its next Advertisement may fall due."""
    return list(itertools.dropwhile(lambda sent: sent[0].priority, sent_by(cluster, name, since)))


def senders(cluster, since):
    """Return who sent each Advertisement since then, in order."""
    return [each.member for each in sorted(cluster.recorder.advertisements) if each.at >= since]


@pytest.mark.parametrize("kind", VRRP_KINDS)
def test_the_peer_holds_the_vip_because_of_the_resignation(kind, tmp_path):
    vip = VRRP_KINDS[kind].get("vips", [VIP])[0]
    with cluster_of(tmp_path, LONG, **VRRP_KINDS[kind]) as cluster:
        have_held(cluster, "lb1", vip, "lb2")
        cluster.nodes["lb1"].ip("addr", "add", f"{OTHER}/32", "dev", "eth0")
        before, header = sent_by(cluster, "lb1", 0)[-1]
        begin = time.time()
        cluster.kill("lb1")
        held_by(cluster, "lb2", vip)
        # One message, which differs from keepalived's own in the priority alone. Its IPv6 has the kernel's hop limit.
        ((resignation, its_header),) = sent_at_the_end(cluster, "lb1", begin)
        before_that = len(sent_by(cluster, "lb1", begin)) - 1
        assert senders(cluster, begin)[before_that:][:2] == ["lb1", "lb2"]
        assert resignation == before._replace(priority=0)
        assert its_header == header._replace(message=its_header.message, hop_limit=packet.REQUIRED_HOP_LIMIT)
        addresses = cluster.nodes["lb1"].output("ip", "-brief", "address", "show", "dev", "eth0")
        assert vip not in addresses.replace("/", " ").split() and f"{OTHER}/32" in addresses


def test_two_vips_on_two_holders_move_each_by_itself(tmp_path):
    other = "192.0.2.11"
    with cluster_of(tmp_path, LONG, vips=[VIP, other], spread=True) as cluster:
        have_held(cluster, "lb1", VIP, "lb2")
        have_held(cluster, "lb2", other, "lb1")
        begin = time.time()
        cluster.kill("lb1")
        assert cluster.settle({VIP: "lb2", other: "lb2"}), cluster.logs()
        assert [message.addresses for message, _header in sent_at_the_end(cluster, "lb1", begin)] == [(VIP,)]


def test_a_backup_that_is_killed_sends_nothing(tmp_path):
    with cluster_of(tmp_path) as cluster:
        held_by(cluster, "lb1", VIP)
        await_hook(cluster, "lb2")
        begin = time.time()
        cluster.kill("lb2")
        ended = time.time()
        until(lambda: senders(cluster, ended).count("lb1") > 1)
        assert sent_by(cluster, "lb2", begin) == [] and cluster.view(VIP).holders == ["lb1"]


@pytest.mark.parametrize("hangs", [False, True])
def test_a_keepalived_that_is_stopped_resigns_and_leaves_no_vip(hangs, tmp_path):
    """keepalived kills its VRRP process if it has not ended after 5 seconds. Then the hook does the rest."""
    with cluster_of(tmp_path, LONG) as cluster:
        have_held(cluster, "lb1", VIP, "lb2")
        begin = time.time()
        if hangs:
            os.kill(int((cluster.folder / "lb1" / "vrrp.pid").read_text()), signal.SIGSTOP)
        said = cluster.stop("lb1")
        held_by(cluster, "lb2", VIP)
        assert {message.priority for message, _header in sent_at_the_end(cluster, "lb1", begin)} == {0}
        assert said == "" or "forcing termination" in cluster.logs()
