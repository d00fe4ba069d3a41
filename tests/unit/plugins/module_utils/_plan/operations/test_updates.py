# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages a maintenance updates: what is not installed stays so, and what nobody knows is refused."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import updates

PACKAGES = ["curl", "haproxy=3.0-1", "keepalived=2.3-1"]
MISSING = "package keepalived is not installed"


def test_apt_takes_versions_in_its_own_words_and_asks_nobody():
    assert updates.of(PACKAGES, "apt", {}) == ([], ["curl"], ["haproxy=3.0-1", "keepalived=2.3-1"], [])


@pytest.mark.parametrize(
    "lines, exact",
    [
        (["haproxy", "keepalived"], ["haproxy-3.0-1", "keepalived-2.3-1"]),
        (["haproxy", MISSING], ["haproxy-3.0-1"]),
        (["haproxy", "haproxy", MISSING], ["haproxy-3.0-1"]),
        (["package haproxy is not installed", MISSING], []),
    ],
)
def test_dnf_gets_versions_of_what_rpm_has(lines, exact):
    assert updates.of(PACKAGES, "dnf", {"stdout_lines": lines}) == ([], ["curl"], exact, ["haproxy", "keepalived"])


@pytest.mark.parametrize(
    "answer, sentence",
    [
        (
            {
                "stdout_lines": ["package haproxy is not installed", MISSING],
                "stderr_lines": ["error: cannot open Packages database in /var/lib/rpm"],
            },
            "haproxy keepalived is installed, so its version cannot be chosen: error: cannot open Packages database",
        ),
        (
            {"stdout_lines": ["haproxy"]},
            "whether keepalived is installed, so its version cannot be chosen: haproxy. Try",
        ),
        ({"stdout_lines": ["Paket haproxy ist nicht installiert", MISSING]}, "whether haproxy is installed"),
        (
            {"msg": "No such file: rpm"},
            "whether haproxy keepalived is installed, so its version cannot be chosen: No such",
        ),
    ],
)
def test_an_answer_that_does_not_tell_of_each_is_none(answer, sentence):
    found = updates.of(PACKAGES, "dnf5", {"stdout_lines": [], **answer})
    assert found.exact == [] and sentence in found.faults[0]
