# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A table of nftables compared with a ruleset, with real nft in a network namespace."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import nft_table
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import nft_guard
from support.netns.links import VIP, VIP6, temporary_link

REDIRECT = ("onprem_lb_api", nft_redirect.ruleset([VIP, VIP6], {6443: 9445}))
GUARD = ("onprem_lb_machine_config", nft_guard.ruleset(["192.0.2.0/24", "2001:db8::/64"]))


@pytest.fixture(scope="module")
def the_link():
    with temporary_link() as made:
        yield made


@pytest.fixture
def run(the_link):
    """As AnsibleModule.run_command, in a network namespace without a table."""

    def command(words, data=""):
        inside = ["ip", "netns", "exec", the_link.client.namespace, *words]
        done = subprocess.run(inside, input=data, text=True, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert command(["nft", "flush", "ruleset"])[0] == 0
    return command


@pytest.mark.parametrize("name, ruleset", [REDIRECT, GUARD], ids=["redirect", "guard"])
def test_a_table_that_was_loaded_is_listed_as_its_ruleset_is(run, name, ruleset):
    wanted = nft_table.wanted(run, name, ruleset)
    assert nft_table.in_force(run, name) == "" != wanted  # nothing was loaded here yet
    nft_table.load(run, ruleset)
    assert nft_table.in_force(run, name) == wanted
    nft_table.delete(run, name)
    assert nft_table.in_force(run, name) == ""


def test_any_rule_that_a_hand_adds_or_removes_makes_a_difference(run):
    name, ruleset = REDIRECT
    wanted = nft_table.wanted(run, name, ruleset)
    for change in (
        "flush chain inet onprem_lb_api redirect_vips",
        "insert rule inet onprem_lb_api redirect_vips ip saddr 192.0.2.7 return",
        "flush chain inet onprem_lb_api output",
    ):
        nft_table.load(run, ruleset)
        assert run(["nft", change])[0] == 0
        assert nft_table.in_force(run, name) != wanted
        nft_table.load(run, ruleset)
        assert nft_table.in_force(run, name) == wanted


def test_a_ruleset_that_nft_refuses_changes_nothing_and_says_what_nft_said(run):
    name, ruleset = REDIRECT
    nft_table.load(run, ruleset)
    before = nft_table.in_force(run, name)
    with pytest.raises(nft_table.Refused, match="syntax error"):
        nft_table.wanted(run, name, ruleset.replace("dnat", "dnta"))
    assert nft_table.in_force(run, name) == before
