# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nft_table: when it loads, when it deletes, and what a dry run says. With real nft: tests/netns."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.modules import nft_table
from support.modules import refusal, run
from support.programs import Programs

TABLE = "table inet mine {\n}\n"
WANTED = {"name": "mine", "ruleset": TABLE}
ABSENT = {"name": "mine", "state": "absent"}


class Host(Programs):
    """A host with a table in force, or none for ''."""

    def __init__(self, table=""):
        self.table = table
        super().__init__({"nft": self._nft, "unshare": TABLE})

    def _nft(self, words):
        if "list" in words:
            return (0, self.table, "") if self.table else (1, "", "No such file or directory")
        self.table = "" if "delete" in words else TABLE
        return 0, "", ""


@pytest.mark.parametrize("before", ["", "table inet mine {\n\tchain other {\n\t}\n}\n"], ids=["absent", "different"])
def test_a_table_that_differs_is_loaded_and_a_dry_run_says_so(before):
    host = Host(before)
    dry = run(nft_table, WANTED, host, check=True)
    assert (dry["changed"], dry["in_force"], host.table) == (True, False, before)
    done = run(nft_table, WANTED, host)
    assert (done["changed"], host.table) == (True, TABLE)
    assert dry["diff"] == done["diff"] == {"before": before, "after": TABLE}
    again = run(nft_table, WANTED, host)
    assert (again["changed"], again["in_force"]) == (False, True)


def test_a_table_that_is_not_wanted_is_deleted_once():
    host = Host(TABLE)
    assert run(nft_table, ABSENT, host, check=True)["changed"] and host.table == TABLE
    assert run(nft_table, ABSENT, host)["changed"] and host.table == ""
    assert not run(nft_table, ABSENT, host)["changed"]


def test_without_nft_a_table_is_absent():
    assert not run(nft_table, ABSENT)["changed"]
    assert run(nft_table, WANTED, check=True)["changed"]
    assert refusal(nft_table, WANTED) == "The table mine needs nft: install the package nftables."


def test_a_ruleset_is_needed_to_put_a_table_in_force():
    assert "ruleset" in refusal(nft_table, {"name": "mine"})


def test_a_ruleset_that_nft_refuses_is_a_sentence():
    host = Host()
    host.answers["unshare"] = (1, "", "syntax error, unexpected string\n")
    said = refusal(nft_table, WANTED, programs=host)
    assert said.startswith("The table mine was not changed. ") and said.endswith(
        "failed: syntax error, unexpected string"
    )
