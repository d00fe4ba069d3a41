# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays changes that split a pair, with real keepalived."""

from __future__ import annotations

import time
from typing import List, NamedTuple, Set, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._plan.change import play as transition
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair

from support.netns.keepaliveds import Cluster
from support.plans.pairs import member
from support.plans.transitions import VIP, living, to_play
from support.waiting import LIMIT_S

SHARED = "192.0.2.77"
CHANGES = {
    "VRID": {"vrid": 77},
    "VRRP version": {"vrrp_version": 3},
    "interval in version 2": {"advert_interval": 4},
    "password": {"auth_pass": "an0ther1"},
    "multicast": {"multicast": True},
    "VIPs of one VRID": {"shared": [SHARED]},  # before keepalived 2.3.3
}


class Seen(NamedTuple):
    """One change of one pair."""

    holders: List[str]  # at the end
    held: Set[Tuple[str, ...]]  # the holders at any time
    overlap_ms: float
    outage_ms: float


class Change:
    """A pair that runs, and the plan that changes it."""

    def __init__(self, changes, interval):
        running = {"advert_interval": interval}
        self.members = living(before=running, **{**running, **changes})
        self.auth_pass = self.members[0]["settings"]["auth_pass"]
        self.before = planner.draft(pair.LAYOUT, [member(1, **running), member(2, **running)])
        self.after = pair.plan(self.members)
        for planned in self.before.members.values():
            planned.router.instances[0]["addresses"] += [f"{vip}/32" for vip in changes.get("shared", [])]

    @property
    def way(self):
        """The way of a run."""
        return to_play(self.members)


class Play:
    """One run of one change, from the moment when lb1 holds the VIP."""

    def __init__(self, change, cluster):
        self.change, self.cluster = change, cluster
        assert cluster.settle({VIP: "lb1"}), cluster.logs()
        self.begin = time.time()

    def in_order(self):
        """Take the steps of a run; return when lb2 has taken over, or would have if it did not hear lb1."""
        for step in (step for wave in self.change.way.waves for step in wave):
            self._take(step)
        sent = len(self._sent_by("lb1"))
        lasts = 5  # Advertisements: longer than lb2's Active_Down_Interval
        self._until(lambda: len(self._sent_by("lb1")) >= sent + lasts or "lb2" in self.cluster.view(VIP).holders)

    def without_care(self):
        """Reload lb1 alone; return when both members hold the VIP, and would have heard each other if they could.

        keepalived begins its own interval again with each Advertisement that it refuses, so one of them may send none.
        """
        self._reload("lb1")
        self._until(lambda: self.cluster.view(VIP).holders == ["lb1", "lb2"])
        sent = len(self.cluster.recorder.advertisements)
        self._until(lambda: len(self.cluster.recorder.advertisements) >= sent + 4)

    def _take(self, step):
        """Do what a run does; return when it has been done."""
        if step.verb == transition.STOP:
            self.cluster.stop(step.member)
        elif step.verb == transition.RELOAD:
            sent = set(self._sent_by(step.member))
            self._reload(step.member)
            self._until(lambda: set(self._sent_by(step.member)) - sent)
        else:
            self._configure(step.member)
            backups = self._backups(step.member)
            self.cluster.start(step.member)
            self._until(lambda: self._backups(step.member) > backups)

    def _until(self, condition):
        assert self.cluster.recorder.wait(condition, LIMIT_S), self.cluster.logs()

    def _configure(self, name):
        self.cluster.configure(name, self.change.after.members[name].router, self.change.auth_pass)

    def _reload(self, name):
        self._configure(name)
        self.cluster.reload(name)

    def _backups(self, name):
        """Return how often a member has become Backup: then it listens."""
        return (self.cluster.folder / name / "log").read_text().count("Entering BACKUP STATE")

    def _sent_by(self, name):
        """Return the destination and the message of each Advertisement of a member."""
        return [each.packet[16:] for each in self.cluster.recorder.advertisements if each.member == name]

    def seen(self):
        recorder, end = self.cluster.recorder, time.time()
        held = {tuple(view.holders) for at, view in recorder.views(VIP) if at >= self.begin}
        gone_ms = recorder.outage(VIP, self.begin, end)
        return Seen(self.cluster.view(VIP).holders, held, recorder.overlap(VIP, self.begin, end), gone_ms)


def run(changes, with_care, interval, folder, aborted, **recording):
    """Play a change; return what was seen.

    :param interval: the seconds between Advertisements
    """
    change = Change(changes, interval)
    with Cluster(change.before, folder, aborted, **recording) as cluster:
        playing = Play(change, cluster)
        playing.in_order() if with_care else playing.without_care()
        return playing.seen()
