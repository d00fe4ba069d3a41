# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Most plans of these tests differ in nothing that the forecast plays, which takes nearly all of their time."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast, plays


@pytest.fixture(scope="package", autouse=True)
def the_same_cluster_is_played_once():
    played = {}

    def play_all(cluster, failures, progress):
        if progress is not forecast.unseen:
            return plays.play_all(cluster, failures, progress)
        key = repr((cluster, failures))
        if key not in played:
            played[key] = list(plays.play_all(cluster, failures, progress))
        return played[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(forecast, "play_all", play_all)
        yield
