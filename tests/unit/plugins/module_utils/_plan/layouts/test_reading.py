# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the way of a member, of what was read before anybody knew what it needs."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import reading

UNIT = "onprem-lb-answers.service"
PACKAGES = ["haproxy", "keepalived", "psmisc"]
DEFINITION = {"prefix": "ipi", "packages": PACKAGES, "units": [UNIT], "files": []}


@pytest.mark.parametrize(
    "components, expected",
    [
        (["haproxy", "keepalived"], ["haproxy is held.", "keepalived is held.", "psmisc is held."]),
        (["haproxy", "frr"], ["haproxy is held.", "psmisc is held."]),
        ([], []),  # a node that carries no VIP
    ],
)
def test_only_packages_that_the_member_needs_are_in_the_way(components, expected):
    host = {"obstacles": {each: f"{each} is held." for each in [*PACKAGES, UNIT]}, "missing_packages": []}
    found = reading.obstacles(host, "worker1", DEFINITION, ["configure"], components, True, False)
    assert found == [*expected, f"{UNIT} is held."]
