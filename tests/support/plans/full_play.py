# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays every failure of every member with all members and all VIPs at once, as `plays.play_all` must seem to do."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import scenario
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.plays import Played


def play_all(cluster, failures, _progress):
    """Yield the outcomes for each VIP at the moments of all VIPs."""
    return (played for played, _is_own in plays(cluster, failures))


def plays(cluster, failures):
    """Yield each outcome, and whether the failure comes at one of the VIP's own moments."""
    initial = {}
    for first in [None, *cluster.members]:
        settled = scenario.settle(cluster, first)
        initial.setdefault(settled.holders, (first, settled))
    for number, (first, settled) in enumerate(initial.values()):
        alone = {vip: scenario.settle(cluster.only([vip], cluster.members), first) for vip in cluster.vips}
        for kind, failure in enumerate(failures):
            for member in cluster.members:
                own = {vip: scenario.failure_times(state, member, failure) for vip, state in alone.items()}
                for at in sorted({at for moments in own.values() for at in moments}):
                    for vip, outcome in scenario.simulate(settled, member, failure, at).items():
                        yield Played(number, kind, member, vip, outcome), at in own[vip]
