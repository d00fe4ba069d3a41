# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters that plan, without netaddr. What they plan: the tests of the layouts."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.onprem.lb.plugins.filter.plan import FilterModule, progress_of
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import subnets


@pytest.mark.parametrize("name", ["layout_plans", "layout_forecast", "layout_faults"])
def test_without_netaddr_the_user_is_told_what_to_install_and_where(monkeypatch, name):
    monkeypatch.setattr(subnets, "NETADDR_MISSING", ImportError("netaddr"))
    refused = FilterModule().filters()[name]([], "pair")
    faults = refused if name == "layout_faults" else refused["faults"]
    assert faults == [f"The controller lacks the Python package netaddr: install it for {sys.executable}."]


def test_a_long_forecast_says_every_five_seconds_how_far_it_is():
    times, said = iter([0, 4, 5, 6, 11]), []
    progress = progress_of("The forecast of 40 members", clock=lambda: next(times), show=said.append)
    for done in range(4):
        progress(done, 20)
    assert said == [
        "The forecast of 40 members: 1 of 20 steps are done.",
        "The forecast of 40 members: 3 of 20 steps are done.",
    ]
