# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Most plans of the tests differ in nothing that the forecast plays, which takes nearly all of their time."""

from __future__ import annotations

from typing import Dict, List

from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast, plays
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.cluster import Cluster
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.scenario import Failure

played: Dict[str, List[plays.Played]] = {}


def play_all(cluster: Cluster, failures: List[Failure], progress: plays.Progress) -> List[plays.Played]:
    """Play the failures of a cluster once in a process; then there is no progress to show."""
    key = repr((cluster, failures))
    if key not in played:
        played[key] = list(plays.play_all(cluster, failures, progress))
    return played[key]


REMEMBERED = (forecast, "play_all", play_all)
