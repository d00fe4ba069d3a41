# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors select what they do in Kubernetes' documentation."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import selector

ROLE = "node-role.kubernetes.io/control-plane"
WITHOUT, EMPTY, OF_RKE2 = {"zone": "a"}, {ROLE: ""}, {ROLE: "true", "zone": "b"}


@pytest.mark.parametrize(
    "text, selected",
    [
        (ROLE, [EMPTY, OF_RKE2]),
        (f"{ROLE}=", [EMPTY]),
        (f"{ROLE}=true", [OF_RKE2]),
        (f"{ROLE} == true", [OF_RKE2]),
        (f"{ROLE}!=true", [WITHOUT, EMPTY]),
        (f"!{ROLE}", [WITHOUT]),
        ("zone in (a, b)", [WITHOUT, OF_RKE2]),
        ("zone in (b)", [OF_RKE2]),
        ("zone notin (a,c)", [EMPTY, OF_RKE2]),
        (f"{ROLE},zone", [OF_RKE2]),
        (f"{ROLE}, zone notin (b, c), zone!=a", [EMPTY]),
        ("other", []),
    ],
)
def test_it_selects_what_kubernetes_does(text, selected):
    found = selector.parse(text)
    assert [labels for labels in (WITHOUT, EMPTY, OF_RKE2) if found.matches(labels)] == selected


@pytest.mark.parametrize(
    "text", ["", " ", "!", "a b", "a=b=c", "a in b", "a in (b", "a,", "=b", "a in (b),,c", "/a", "a>5"]
)
def test_what_is_none_is_refused(text):
    with pytest.raises(ValueError):
        selector.parse(text)
