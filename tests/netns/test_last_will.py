# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The last will of a real keepalived that was killed, heard by a real keepalived."""

from __future__ import annotations

import threading
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.net import ip
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import pair
from support.netns.keepaliveds import Cluster
from support.netns.links import skip_reason
from support.plans.pairs import member

pytestmark = pytest.mark.timed
VIP, VIP6, OTHER = "192.0.2.10", "2001:db8::10", "192.0.2.77"
WITHIN_S = 0.3
SILENCE_S = 1.9  # without a last will the peer waits for two seconds at least
HANDOVER_MS = 60  # two keepaliveds may have the VIP for so long when the first one returns
KINDS = {
    "version 2": {},
    "version 3": {"vrrp_version": 3},
    "multicast": {"multicast": True},
    "IPv6": {"vips": [VIP6]},
    "IPv6, multicast": {"vips": [VIP6], "multicast": True},
}


def cluster_of(tmp_path, **settings):
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    plan = pair.plan([member(1, **settings), member(2, **settings)])
    assert not plan.faults, plan.faults
    return Cluster(plan, tmp_path, threading.Event())


def held_by(cluster, name, vip, limit=10):
    assert cluster.settle({vip: name}, limit), cluster.logs()


def sent_by(cluster, name, since):
    """Return what a member sent since then, as its peers read it, and the IP headers."""
    frames = [each.packet for each in cluster.recorder.advertisements if each.member == name and each.at >= since]
    datagrams = [ip.read(frame, ip.IPV6 if frame[0] >> 4 == 6 else ip.IPV4) for frame in frames]
    return [(packet.decode(each.message, each.source, each.destination), each) for each in datagrams]


def taken_over(cluster, vip, begin):
    """Return how many seconds later lb2 announced a VIP."""
    return next(at for at, view in cluster.recorder.views(vip) if at > begin and view.announcer == "lb2") - begin


@pytest.mark.parametrize("kind", KINDS)
def test_the_peer_holds_the_vip_at_once_and_the_two_never_do_together(kind, tmp_path):
    vip = KINDS[kind].get("vips", [VIP])[0]
    with cluster_of(tmp_path, **KINDS[kind]) as cluster:
        held_by(cluster, "lb1", vip)
        cluster.nodes["lb1"].ip("addr", "add", f"{OTHER}/32", "dev", "eth0")
        before, header = sent_by(cluster, "lb1", 0)[-1]
        begin = time.time()
        cluster.kill("lb1")
        held_by(cluster, "lb2", vip, SILENCE_S)
        assert taken_over(cluster, vip, begin) < WITHIN_S
        assert cluster.recorder.overlap(vip, begin, time.time()) == 0
        # One message, which differs from keepalived's own in the priority alone. Its IPv6 has the kernel's hop limit.
        ((will, its_header),) = sent_by(cluster, "lb1", begin)
        assert will == before._replace(priority=0)
        assert its_header == header._replace(message=its_header.message, hop_limit=packet.REQUIRED_HOP_LIMIT)
        addresses = cluster.nodes["lb1"].output("ip", "-brief", "address", "show", "dev", "eth0")
        assert vip not in addresses.replace("/", " ").split() and f"{OTHER}/32" in addresses
        cluster.start("lb1")
        held_by(cluster, "lb1", vip)
        assert cluster.recorder.overlap(vip, begin, time.time()) <= HANDOVER_MS


def test_two_vips_on_two_holders_move_each_by_itself(tmp_path):
    both = {"vips": [VIP, "192.0.2.11"], "spread": True}
    with cluster_of(tmp_path, **both) as cluster:
        assert cluster.settle({VIP: "lb1", "192.0.2.11": "lb2"}, 10), cluster.logs()
        begin = time.time()
        cluster.kill("lb1")
        assert cluster.settle({VIP: "lb2", "192.0.2.11": "lb2"}, SILENCE_S), cluster.logs()
        assert [message.addresses for message, _header in sent_by(cluster, "lb1", begin)] == [(VIP,)]


def test_a_backup_that_is_killed_sends_nothing(tmp_path):
    with cluster_of(tmp_path) as cluster:
        held_by(cluster, "lb1", VIP)
        begin = time.time()
        cluster.kill("lb2")
        cluster.recorder.wait(lambda: False, WITHIN_S)
        assert sent_by(cluster, "lb2", begin) == [] and cluster.view(VIP).holders == ["lb1"]


def test_a_keepalived_that_was_stopped_has_resigned_itself(tmp_path):
    with cluster_of(tmp_path) as cluster:
        held_by(cluster, "lb1", VIP)
        cluster.stop("lb1")
        held_by(cluster, "lb2", VIP)
        begin = time.time()
        assert cluster.execute_will("lb1") == ""
        cluster.recorder.wait(lambda: False, WITHIN_S)
        assert sent_by(cluster, "lb1", begin) == []
