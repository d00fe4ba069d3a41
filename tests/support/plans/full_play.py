# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays every failure of every member with all members and all VIPs at once, as `plays.play_all` must seem to do."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import scenario
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.plays import Played


def play_all(cluster, failures, _progress):
    initial = {}
    for first in [None, *cluster.members]:
        settled = scenario.settle(cluster, first)
        initial.setdefault(settled.holders, settled)
    for number, settled in enumerate(initial.values()):
        for kind, failure in enumerate(failures):
            for member in cluster.members:
                for at in scenario.failure_times([settled], member, failure):
                    for vip, outcome in scenario.simulate(settled, member, failure, at).items():
                        yield Played(number, kind, member, vip, outcome)
