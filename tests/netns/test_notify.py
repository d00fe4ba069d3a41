# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An address at a provider follows the VIP: it belongs to the member whose program was last told to own it.

A file stands in for the provider's API: each call of a program is a line.
"""

from __future__ import annotations

import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.drill import faults
from support.netns.links import skip_reason
from support.netns.pairs import ENGINES, VIP, running
from support.waiting import until

PROGRAMS = ("haproxy", "keepalived", "nft")
pytestmark = pytest.mark.skipif(bool(skip_reason(*PROGRAMS)), reason=str(skip_reason(*PROGRAMS)))
OTHER_VIP = "192.0.2.11"


def notifying(engine, of):
    """Return a pair whose instances, or whose sync group, tell the provider of each change."""

    class Notifying(ENGINES[engine]):
        def router(self, name):
            found = super().router(name)
            told = {"notify": f"/bin/sh {self.folder}/call {name}", "notify_user": "root"}
            return {**found, of: [{**each, **told} for each in found[of]]}

        def __enter__(self):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "call").write_text(f'echo "$@" >>{self.folder}/calls\n')
            (self.folder / "calls").touch()
            return super().__enter__()

        def start(self, name):
            """Start a router once the first one is Active: a late call of the second one would count for a loss."""
            super().start(name)
            until(lambda: self.owner == ["lb1"], self.calls)

        def calls(self):
            return (self.folder / "calls").read_text()

        def told(self, state):
            """Return the members that were told of a state, in the order of the calls."""
            return [line.split()[0] for line in self.calls().splitlines() if line.split()[3] == state]

        @property
        def owner(self):
            return self.told("MASTER")[-1:]

    return Notifying


@pytest.mark.parametrize("of", ["instances", "sync_groups"])
@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_one_way_loss_the_address_is_with_the_member_that_holds_the_vip(engine, of, tmp_path):
    vips = {"vips": [VIP, OTHER_VIP], "order": [["lb1", "lb2"]] * 2, "sync": True} if of == "sync_groups" else {}
    with running(notifying(engine, of), tmp_path / "pair", threading.Event(), **vips) as cluster:
        held = {vip.address: "lb1" for vip in cluster.plan.vips}
        until(lambda: cluster.settle(held) and cluster.owner == ["lb1"], cluster.calls)
        lb1, told = cluster.nodes["lb1"], cluster.told("MASTER").count("lb2")
        lb1.output("nft", faults.loss_rules("eth0"))
        until(lambda: cluster.told("MASTER").count("lb2") > told, cluster.calls)
        yielded = cluster.told("BACKUP").count("lb2")
        lb1.output("nft", faults.DELETE_TABLE)
        until(lambda: cluster.told("BACKUP").count("lb2") > yielded, cluster.calls)
        until(lambda: cluster.settle(held) and cluster.owner == ["lb1"], cluster.calls)
