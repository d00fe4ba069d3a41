# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nft_tables: when it loads, when it deletes, and what a dry run says. With real nft: tests/netns."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.modules import nft_tables
from support.modules import refusal, run
from support.programs import Programs

TABLE = "table inet mine {\n}\n"
WANTED = {"tables": [{"name": "mine", "ruleset": TABLE}]}
ABSENT = {"tables": [{"name": "mine", "state": "absent"}]}


class Host(Programs):
    """A host with tables in force, by name."""

    def __init__(self, **tables):
        self.tables = tables
        super().__init__({"nft": self._nft, "unshare": TABLE})

    def _nft(self, words):
        if "list" in words:
            table = self.tables.get(words[-1])
            return (0, table, "") if table else (1, "", "No such file or directory")
        if "delete" in words:
            del self.tables[words[-1]]
        else:
            self.tables["mine"] = TABLE
        return 0, "", ""


@pytest.mark.parametrize("before", ["", "table inet mine {\n\tchain other {\n\t}\n}\n"], ids=["absent", "different"])
def test_a_table_that_differs_is_loaded_and_a_dry_run_says_so(before):
    host = Host(mine=before)
    dry = run(nft_tables, WANTED, host, check=True)
    assert (dry["changed"], dry["not_in_force"], host.tables) == (True, ["mine"], {"mine": before})
    done = run(nft_tables, WANTED, host)
    assert (done["changed"], host.tables) == (True, {"mine": TABLE})
    assert dry["diff"] == done["diff"]
    assert [(each["before"], each["after"]) for each in done["diff"]] == [(before, TABLE)]
    again = run(nft_tables, WANTED, host)
    assert (again["changed"], again["not_in_force"], again["diff"]) == (False, [], [])


def test_a_table_that_is_not_wanted_is_deleted_once():
    host = Host(mine=TABLE)
    assert run(nft_tables, ABSENT, host, check=True)["changed"] and host.tables
    assert run(nft_tables, ABSENT, host)["changed"] and not host.tables
    assert not run(nft_tables, ABSENT, host)["changed"]


def test_one_table_may_be_written_as_in_1_0():
    host = Host()
    assert run(nft_tables, WANTED["tables"][0], host)["changed"] and host.tables == {"mine": TABLE}
    assert run(nft_tables, ABSENT["tables"][0], host)["changed"] and host.tables == {}
    assert "The table mine lacks a ruleset: add it." in refusal(nft_tables, {"name": "mine"}, programs=host)
    assert refusal(nft_tables, {}, programs=host) and refusal(nft_tables, {**WANTED, "name": "mine"}, programs=host)


def test_only_what_differs_is_touched():
    host = Host(mine=TABLE, other=TABLE)
    both = {"tables": [*WANTED["tables"], {"name": "other", "state": "absent"}]}
    done = run(nft_tables, both, host)
    assert (done["not_in_force"], host.tables) == (["other"], {"mine": TABLE})
    assert [line for line in host.ran if line.startswith("nft --file")] == []


def test_without_nft_a_table_is_absent():
    assert not run(nft_tables, ABSENT)["changed"]
    assert run(nft_tables, WANTED, check=True)["not_in_force"] == ["mine"]
    assert refusal(nft_tables, WANTED) == "The table mine needs nft: install the package nftables."


def test_a_ruleset_is_needed_to_put_a_table_in_force():
    assert "ruleset" in refusal(nft_tables, {"tables": [{"name": "mine"}]})


def test_a_ruleset_that_nft_refuses_is_a_sentence():
    host = Host()
    host.answers["unshare"] = (1, "", "syntax error, unexpected string\n")
    said = refusal(nft_tables, WANTED, programs=host)
    assert said.startswith("The table mine was not changed. ") and said.endswith(
        "failed: syntax error, unexpected string"
    )
