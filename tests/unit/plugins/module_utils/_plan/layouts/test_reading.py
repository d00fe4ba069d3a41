# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the way of a member, of what was read before anybody knew what it needs."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import reading

PACKAGES = ["haproxy", "keepalived", "psmisc"]
DEFINITION = {"prefix": "ipi", "packages": PACKAGES, "units": ["onprem-lb-answers.service"], "files": []}


def in_the_way(things, components, missing=(), stages=("configure",), is_native=True):
    host = {"obstacles": {each: f"{each} is held." for each in things}, "missing_packages": list(missing)}
    return reading.obstacles(host, "worker1", DEFINITION, stages, components, is_native, False)


@pytest.mark.parametrize(
    "components, expected",
    [
        (["haproxy", "keepalived"], ["haproxy is held.", "keepalived is held.", "psmisc is held."]),
        (["haproxy", "frr"], ["haproxy is held.", "psmisc is held."]),
        ([], []),  # a node that carries no VIP
    ],
)
def test_only_packages_that_the_member_needs_are_in_the_way(components, expected):
    assert in_the_way(PACKAGES, components) == expected
    assert in_the_way(PACKAGES, components, is_native=False) == []


def test_its_units_are_in_the_way_whatever_it_carries():
    assert in_the_way(DEFINITION["units"], []) == ["onprem-lb-answers.service is held."]


def test_a_stage_without_the_programs_is_refused():
    assert in_the_way([], ["haproxy"], ["haproxy"]) == ["worker1 lacks haproxy: run the stage install as well."]
    assert in_the_way([], ["haproxy"], ["haproxy"], ["install", "configure"]) == []
