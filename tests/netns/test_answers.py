# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real keepaliveds do when the balancer beside one hangs, and when who asks it does not know.

A stand-in listens where haproxy answers. A frozen machine makes late what it is asked as well as who asks, so nothing
here is judged by how long it takes. A holder that stands still after an offer, or for three intervals, loses its VIP to
whoever waits for it: no other member may take it over sooner than it has heard nothing for so long.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import answers
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.netns.keepaliveds import Cluster
from support.netns.links import skip_reason
from support.netns.namespaces import inside
from support.netns.pairs import is_open
from support.netns.recorder import message_in
from support.plans.pairs import member
from support.waiting import stays, until

VIP, VIP6 = "192.0.2.10", "2001:db8::10"
STAND_IN = """\
import socket
with socket.create_server(("127.0.0.1", int(PORT))) as server:
    while True:
        client = server.accept()[0]
        client.recv(100)
        client.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
        client.close()
"""
KINDS = {
    "version 2": {},
    "version 3": {"vrrp_version": 3},
    "multicast": {"multicast": True},
    "IPv6": {"vips": [VIP6]},
    "without preemption": {"preempt": False},
    "low priorities": {"priorities": [100, 98]},
}
A_WHILE_S = 5  # more than a member waits that does not know better
SKEW_S = 255 / 256  # the Skew_Time of a member that does not answer


class Asked(Cluster):
    """Members with a stand-in for whatever must answer there, and what asks them."""

    def start(self, name):
        for question in self.plan.members[name].questions:
            self._stand_in(name, question["name"], question["port"])
        super().start(name)
        self.ask(name)

    def _stand_in(self, name, what, port):
        command = ["ip", "netns", "exec", self.nodes[name].namespace, sys.executable, "-IS", "-c"]
        self.running[f"{name}'s {what}"] = subprocess.Popen(
            [*command, STAND_IN.replace("PORT", str(port))], start_new_session=True
        )
        with inside(self.nodes[name].namespace):
            until(lambda: is_open("127.0.0.1", port), "the stand-in does not listen")

    def signal(self, name, what, number):
        os.killpg(self.running[f"{name}'s {what}"].pid, number)

    def says(self, name, what=answers.NAME):
        """What a track file of a member says."""
        file = self.track_file(name, what)
        return file.read_text().strip() if file.exists() else ""

    def sent(self, vip):
        """Return each Advertisement for a VIP so far: when it was sent, by whom, and its priority."""
        vrid = next(each.vrid for each in self.plan.vips if each.address == vip)
        messages = [(each.at, each.member, message_in(each.packet)) for each in self.recorder.advertisements]
        return sorted((at, name, message[2]) for at, name, message in messages if message[1] == vrid)

    def was_left(self, vip, holder, since):
        """Whether another member has taken a VIP over since then; fail if it had heard the holder shortly before."""
        announced = [each for each in sorted(self.recorder.events) if (each.address, each.kind) == (vip, "announced")]
        first = next((each for each in announced if each.at > since and each.member != holder), None)
        if first is None:
            return False
        sent = [each for each in self.sent(vip) if each[0] < first.at]
        taken = [at for at, name, _priority in sent if name == first.member][-1]  # it advertises, then announces
        heard, _holder, priority = [each for each in sent if each[1] == holder and each[0] < taken][-1]
        assert taken - heard >= SKEW_S + (3 if priority else 0), self.logs()
        return True

    def keeps(self, vip, holder, since):
        """Fail unless a member keeps a VIP for as long as the others hear it."""
        end = time.time() + A_WHILE_S
        until(lambda: self.was_left(vip, holder, since) or time.time() > end)
        assert self.was_left(vip, holder, since) or holder in self.view(vip).holders, self.logs()

    def hang(self, name, *those):
        for what in those or [answers.NAME]:
            self.signal(name, what, signal.SIGSTOP)
        until(lambda: all(self.says(name, what) == "1" for what in those or [answers.NAME]), self.logs)


@pytest.fixture
def started(tmp_path):
    """Start the members of a plan; return them."""
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    made = []

    def start(plan):
        assert not plan.faults, plan.faults
        cluster = Asked(plan, tmp_path / "members", threading.Event())
        made.append(cluster)
        cluster.__enter__()
        return cluster

    yield start
    for cluster in made:
        cluster.__exit__()


@pytest.fixture
def cluster_of(started):
    """Start a pair; return it, with its VIP and who holds it."""

    def start(**settings):
        cluster = started(pair.plan([member(1, **settings), member(2, **settings)]))
        vip = settings.get("vips", [VIP])[0]
        first = ("lb1",) if settings.get("preempt", True) else ("lb1", "lb2")
        until(lambda: any(cluster.settle({vip: name}, 1) for name in first), cluster.logs)
        holder = cluster.view(vip).holders[0]
        return cluster, vip, holder, "lb2" if holder == "lb1" else "lb1"

    return start


def goes_on(cluster, name, *those):
    for what in those:
        cluster.signal(name, what, signal.SIGCONT)
    until(lambda: all(cluster.says(name, what) == "0" for what in those), cluster.logs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_answers_takes_over_from_one_that_does_not(kind, cluster_of):
    cluster, vip, holder, other = cluster_of(**KINDS[kind])
    cluster.hang(holder)
    assert cluster.settle({vip: other}), cluster.logs()
    assert "Entering FAULT STATE" not in cluster.logs()


@pytest.mark.parametrize("kind", KINDS)
def test_where_none_answers_the_holder_keeps_it_until_one_answers_again(kind, cluster_of):
    cluster, vip, holder, other = cluster_of(**KINDS[kind])
    cluster.hang(other)
    assert cluster.settle({vip: holder}), cluster.logs()
    begin = time.time()
    cluster.hang(holder)
    cluster.keeps(vip, holder, begin)
    goes_on(cluster, other, answers.NAME)
    assert cluster.settle({vip: other}), cluster.logs()


def test_where_one_after_the_other_hangs_the_last_one_keeps_it(cluster_of):
    """Although the first one has the higher priority, and would preempt one that is even a little lower."""
    cluster, vip, first, last = cluster_of()
    cluster.hang(first)
    assert cluster.settle({vip: last}), cluster.logs()
    begin = time.time()
    cluster.hang(last)
    cluster.keeps(vip, last, begin)


def test_one_that_dies_gives_it_up_although_no_other_answers(cluster_of):
    cluster, vip, holder, other = cluster_of()
    cluster.hang(other)
    cluster.fail("haproxy_killed", holder)
    assert cluster.settle({vip: other}), cluster.logs()
    assert "Entering FAULT STATE" in (cluster.folder / holder / "log").read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_without_anybody_who_asks_the_holder_keeps_it_even_if_it_hangs(number, cluster_of):
    cluster, vip, holder, _other = cluster_of()
    until(lambda: cluster.says(holder) == "0")
    cluster.signal(holder, "questions", number)
    cluster.signal(holder, answers.NAME, signal.SIGSTOP)
    stays(lambda: cluster.says(holder) == "0" and holder in cluster.view(vip).holders, A_WHILE_S)


def test_a_track_file_that_is_gone_takes_nothing_away(cluster_of):
    """systemd removes it when who asks has ended, and keepalived starts without it."""
    cluster, vip, holder, other = cluster_of()
    cluster.hang(holder)
    assert cluster.settle({vip: other}), cluster.logs()
    cluster.signal(holder, "questions", signal.SIGKILL)
    cluster.track_file(holder, answers.NAME).unlink()
    assert cluster.settle({vip: "lb1"}), cluster.logs()  # its priority is the highest one again


def test_a_reload_forgets_nothing(cluster_of):
    cluster, vip, holder, other = cluster_of()
    cluster.hang(holder)
    assert cluster.settle({vip: other}), cluster.logs()
    reloaded = (cluster.folder / holder / "log").read_text().count("Reload complete")
    cluster.reload(holder)
    until(lambda: (cluster.folder / holder / "log").read_text().count("Reload complete") > reloaded, cluster.logs)
    stays(lambda: other in cluster.view(vip).holders, A_WHILE_S)
    assert answers.NAME in (cluster.folder / holder / "keepalived.conf").read_text()


INGRESS = "192.0.2.11"
OF_CLUSTER = {"cluster_name": "lab", "masters": ["lb1", "lb2", "lb3"], "api_vips": [VIP], "ingress_vips": [INGRESS]}


@pytest.fixture
def masters(started):
    """Start three masters, which do not preempt; lb1 holds both VIPs."""
    cluster = started(ipi.plan([{**member(number), "settings": OF_CLUSTER} for number in (1, 2, 3)]))
    for name in ("lb2", "lb3"):
        cluster.hang(name, "chk_api", "chk_ingress")
    assert cluster.settle({VIP: "lb1", INGRESS: "lb1"}), cluster.logs()
    return cluster


def test_each_vip_of_a_cluster_moves_to_a_master_that_answers_for_it_however_many_checks_fail(masters):
    goes_on(masters, "lb2", "chk_ingress")
    goes_on(masters, "lb3", "chk_api")
    masters.hang("lb1", "chk_api", "chk_haproxy", "chk_ingress")
    assert masters.settle({VIP: "lb3", INGRESS: "lb2"}), masters.logs()
    assert "Entering FAULT STATE" not in masters.logs()


def test_where_no_master_answers_the_holder_keeps_the_vips_until_one_does(masters):
    begin = time.time()
    masters.hang("lb1", "chk_api", "chk_ingress")
    for vip in (VIP, INGRESS):
        masters.keeps(vip, "lb1", begin)
    goes_on(masters, "lb3", "chk_ingress")
    assert masters.settle({VIP: "lb1", INGRESS: "lb3"}), masters.logs()
