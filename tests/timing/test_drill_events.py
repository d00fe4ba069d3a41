# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event of a drill costs clients no more time than the forecast says.

tests/netns/test_drill_events.py judges what happens. Each event is played in several rounds on one pair. Few pairs run
at once, because the forecast's figures are bounds for hosts that are not busy.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import backend, conntrack, faults, ports, stranger
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.forecast import SWITCH_MS
from support.netns.links import sh, skip_reason
from support.netns.namespaces import inside
from support.netns.pairs import ENGINES, VIP, Terse, failing, known_mac, read_port, running
from support.netns.recorder import use_realtime_priority
from support.netns.stalls import StallDetector
from support.rounds import ROUNDS, percentile
from support.waiting import LIMIT_S, until

PROGRAMS = ("haproxy", "keepalived", "nft")
AT_ONCE = 2
REFRESH = 5  # seconds between two announcements of the holder's addresses, a minute by default
THREE_SECONDS_MS = 3000  # in which a member without a balancer that serves loses its VIP


class Rounds:
    """The rounds of one event on one pair.

    :ivar excess_ms: by what a bound is for: by how much each round has exceeded it
    """

    def __init__(self, pair, stalled):
        self.pair, self.recorder, self.stalled = pair, pair.recorder, stalled
        self.lb1, self.lb2 = (pair.nodes[name] for name in ("lb1", "lb2"))
        self.excess_ms = {}

    def settle(self, holder):
        assert self.pair.settle({VIP: holder}, LIMIT_S), self.recorder.views(VIP)

    def judge(self, what, ms, bound_ms):
        self.excess_ms.setdefault(what, []).append(ms - bound_ms)

    def judge_outage(self, what, since, bound_ms):
        self.judge(what, self.pair.outage(VIP, since, time.time()), bound_ms)

    def judge_overlap(self, since, bound_ms):
        self.judge("two holders", self.recorder.overlap(VIP, since, time.time()), bound_ms)

    def judge_time(self, what, since, until, bound_ms):
        self.judge(what, (until - since - self.stalled(since, until)) * 1000, bound_ms)

    def first(self, since, condition):
        """Return when a view began that meets a condition."""
        return next(at for at, view in self.recorder.views(VIP) if at > since and condition(view))

    def balancer_fails(self, event, begin, end):
        """Have lb1's balancer fail and recover by two calls."""
        line = self.pair.forecast(event)
        began = self.recorder.record("lb1", "died")
        begin()
        self.settle(line["after"])
        self.judge_outage("outage", began, min(line["outage_ms"], THREE_SECONDS_MS))
        end()
        self.recorder.record("lb1", "revived")
        self.settle(line["back"])


def haproxy_hung(rounds):
    def send(number):
        return lambda: rounds.pair.signal_balancer("lb1", number)

    rounds.balancer_fails("haproxy_hung", send(signal.SIGSTOP), send(signal.SIGCONT))


def conntrack_full(rounds):
    def load(rules):
        return lambda: rounds.lb1.output("nft", rules)

    rounds.balancer_fails("conntrack_full", load(conntrack.rules()), load(backend.DELETE_TABLE))


def split_heals(rounds):
    """The loser's kernel has asked for the winner's MAC three times, and has not given up yet."""
    line = rounds.pair.forecast("host_cut")
    rounds.lb2.output("ip", "neighbour", "flush", "all")
    cut = rounds.pair.fail("host_cut", "lb1")
    until(lambda: rounds.pair.view(VIP).announcer == "lb2", "lb2 does not take over")
    rounds.judge_outage("outage", cut, line["outage_ms"])
    rounds.recorder.wait(lambda: False, 2.1)
    healed = rounds.pair.revert("host_cut", "lb1")
    rounds.settle(line["back"])
    rounds.judge_overlap(healed, line["two_holders_ms"])
    yielded = rounds.first(healed, lambda view: view.holders == ["lb1"])
    back = rounds.first(healed, lambda view: view.announcer == "lb1")
    rounds.judge_time("back", yielded, back, line["back_ms"] - line["back_later_ms"])


def vrrp_lost(rounds):
    line, began = rounds.pair.forecast("vrrp_lost"), time.time()
    rounds.lb1.output("nft", faults.loss_rules("eth0"))
    until(lambda: rounds.pair.view(VIP).holders == ["lb1", "lb2"], "lb2 does not take over")
    rounds.recorder.wait(lambda: False, began + line["lasts_ms"] / 1000 - time.time())
    rounds.lb1.output("nft", faults.DELETE_TABLE)
    longer_ms = (time.time() - began) * 1000 - line["lasts_ms"]
    rounds.settle(line["back"])
    rounds.judge_overlap(began, line["two_holders_ms"] + longer_ms)


def port_fails(rounds, event, script, port):
    line, began = rounds.pair.forecast(event), rounds.recorder.record("lb1", "cut")
    with failing(rounds.lb1, script.inject):
        rounds.settle(line["after"])
        rounds.judge_outage("outage", began, line["outage_ms"])
    rounds.lb1.output("sh", "-c", ports.back(port))
    back = rounds.recorder.record("lb1", "joined")
    rounds.settle(line["back"])
    rounds.judge_outage("back", back, line["back_ms"] - line["back_later_ms"])
    rounds.judge_overlap(began, SWITCH_MS)


def port_down(rounds):
    port = read_port(rounds.lb1)
    port_fails(rounds, "port_down", ports.down(port), port)


def link_flapping(rounds):
    port = read_port(rounds.lb1)
    port_fails(rounds, "link_flapping", ports.flapping(port, 1, "no-unit"), port)


def stranger_with_vip(rounds):
    client = rounds.pair.link.client
    with inside(client.namespace):
        until(lambda: known_mac(client, VIP) in ("", rounds.lb1.mac))
        client.output("ip", "neighbour", "replace", VIP, "dev", "eth0", "lladdr", rounds.lb1.mac, "nud", "stale")
        began = time.time()
        with failing(rounds.lb1, stranger.arrives("eth0", VIP, "no-unit")[0]):
            until(lambda: known_mac(client, VIP) == stranger.MAC.hex(":"), "the stranger is not believed")
        until(lambda: known_mac(client, VIP) == rounds.lb1.mac, "the holder does not announce it again")
        rounds.judge_time("believed", began, time.time(), (REFRESH + 1) * 1000 + SWITCH_MS)


def port_back_before_takeover(rounds):
    """The members do not preempt, so each round begins with the other one."""
    pair = rounds.pair
    first = until(lambda: next((name for name in pair.nodes if pair.stays_settled({VIP: name}, 2)), None))
    other = "lb2" if first == "lb1" else "lb1"
    node, line = pair.nodes[first], pair.forecast("port_down")
    node.output("ip", "neighbour", "flush", "all")
    began = time.time()
    sh("ip", "-n", pair.link.bridge, "link", "set", node.port, "down")
    rounds.recorder.wait(lambda: False, 1.8)
    sh("ip", "-n", pair.link.bridge, "link", "set", node.port, "up")
    rounds.settle(other)
    moved = rounds.first(began, lambda view: view.announcer == other)
    rounds.judge_time("outage", began, moved, line["outage_ms"])


EVENTS = (haproxy_hung, conntrack_full, split_heals, vrrp_lost, port_down, link_flapping, stranger_with_vip)
CASES = {f"{event.__name__}, {engine}": (event, engine, {}) for event in EVENTS for engine in ENGINES}
CASES["split_heals, terse"] = (split_heals, Terse, {})
for engine in ENGINES:
    CASES[f"port_back_before_takeover, {engine}"] = (port_back_before_takeover, engine, {"preempt": False})


def play(event, kind, settings, folder, aborted, stalled):
    changes = {"garp_refresh": REFRESH} if event is stranger_with_vip else {}
    with running(kind, folder, aborted, changes, stalled, **settings) as pair:
        rounds = Rounds(pair, stalled)
        if settings.get("preempt", True):
            rounds.settle("lb1")
        for _round in range(ROUNDS):
            event(rounds)
        return rounds.excess_ms


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    if skip_reason(*PROGRAMS):
        pytest.skip(skip_reason(*PROGRAMS))
    aborted, folder = threading.Event(), tmp_path_factory.mktemp
    threads = ThreadPoolExecutor(AT_ONCE, initializer=use_realtime_priority)
    with contextlib.closing(StallDetector()) as detector, threads as pool:
        try:
            yield {
                name: pool.submit(play, *case, folder("play"), aborted, detector.stalled)
                for name, case in CASES.items()
            }
        finally:
            aborted.set()


@pytest.mark.parametrize("name", CASES)
def test_no_event_costs_more_time_than_forecast(played, name):
    excess_ms = played[name].result()
    print({what: sorted(rounds) for what, rounds in excess_ms.items()})
    assert {what: rounds for what, rounds in excess_ms.items() if percentile(rounds) > 0} == {}
