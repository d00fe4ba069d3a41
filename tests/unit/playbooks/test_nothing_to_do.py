# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that would do nothing, because no host is where it looks, fails and says so."""

from __future__ import annotations

import pytest
from support.playbooks import play

MISSPELT = "[pairs]\nlb1\nlb2\n[backends]\nnode1\n"


@pytest.mark.parametrize(
    "playbook, groups",
    [
        ("site", "pair or ipi_masters or ipi_workers"),
        ("pair", "pair"),
        ("ipi", "ipi_masters or ipi_workers"),
        ("forecast", "pair or ipi_masters or ipi_workers"),
        ("remove", "pair or ipi_masters or ipi_workers"),
        ("drill", "pair or ipi_masters or ipi_workers"),
        ("dns", "pair or ipi_masters"),
        ("status", "pair or ipi_masters or ipi_workers"),
        *((name, "pair or ipi_masters or ipi_workers") for name in ("switchover", "maintenance", "rollback", "backup")),
    ],
)
def test_a_misspelt_group_is_refused(tmp_path, playbook, groups):
    code, said = play(tmp_path, MISSPELT, f"onprem.lb.{playbook}")
    assert code == 2
    assert f"This run is for lb1, lb2, node1, localhost, and no host of it is in {groups}, so nothing" in said


INVENTORIES = {
    "empty inventory": "",
    "no member: empty group": "[pair]\n",
    "two groups: [pair] empty and [ipi_masters] empty": "[pair]\n[ipi_masters]\n",
    "INI syntax error": "[pair\nlb1\n",
}


@pytest.mark.parametrize("groups", INVENTORIES.values(), ids=INVENTORIES)
def test_an_inventory_without_a_host_is_refused(tmp_path, groups):
    code, said = play(tmp_path, groups, "onprem.lb.site")
    assert code == 2
    assert "The inventory has no host: name its file with -i." in " ".join(said.splitlines()[-10:])


def test_a_limit_that_leaves_no_member_is_refused(tmp_path):
    code, said = play(tmp_path, "[pair]\nlb1\nlb2\n[backends]\nnode1\n", "onprem.lb.site", "--limit", "backends")
    assert code == 2
    assert "This run is for node1, and no host of it is in pair or ipi_masters or ipi_workers" in said


def test_a_survey_of_hosts_that_there_are_not_is_refused(tmp_path):
    code, said = play(tmp_path, MISSPELT, "onprem.lb.survey", "-e", "survey_hosts=pair")
    assert code == 2
    assert "no host of it is in pair, so nothing would be done" in said
