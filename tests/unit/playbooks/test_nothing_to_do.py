# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that would do nothing, because no host is where it looks, fails and says so."""

from __future__ import annotations

import pytest
from support.paths import ROOT
from support.playbooks import PAIR, play

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


# What each playbook that connects to hosts needs beside them; the others connect to none.
CONNECTS = {
    "backup": ("backup_folder=~/backups",),
    "drill": (),
    "forecast": ("forecast_transition=true",),
    "import": ("import_hosts=pair", "import_output=~/imported"),
    "maintenance": ("maintenance_pause=1",),
    "pair": (),
    "remove": ("confirm=true",),
    "restore": ("restore_file=~/backup.json",),
    "rollback": ("rollback_list=true",),
    "site": (),
    "status": (),
    "survey": ("survey_hosts=pair",),
    "switchover": (),
}
CONNECTS_TO_NONE = {"dns", "pods"}
OF_CLUSTER = {"ipi"}  # the same stages as those of `pair`


def test_the_table_has_each_playbook():
    assert {file.stem for file in (ROOT / "playbooks").glob("*.yml")} == {*CONNECTS, *CONNECTS_TO_NONE, *OF_CLUSTER}


@pytest.fixture
def silent(tmp_path):
    """A pair of which one member does not answer, and the other one cannot be asked."""
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\necho 'No route to host' >&2\nexit 255\n")
    program.chmod(0o755)
    (tmp_path / "backup.json").write_text('{"backup": "20260131T120000Z", "members": {"lb1": {}, "lb2": {}}}')
    return PAIR.replace("lb1 ", f"lb1 ansible_ssh_executable={program} ") + "\n[probe]\nlb1\n"


@pytest.mark.parametrize("playbook", CONNECTS)
def test_a_run_that_has_read_no_host_fails_and_says_why(tmp_path, silent, playbook):
    given = [word for each in CONNECTS[playbook] for word in ("-e", each)]
    code, said = play(tmp_path, silent, f"onprem.lb.{playbook}", *given)
    end = " ".join(said.split("PLAY RECAP")[-1].split())
    assert code in (2, 4), said
    assert "No route to host" in end and "there_is_none" in end
    assert "censored" not in end and "has been hidden" not in end
