# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says of lasting connections in each change of a direct plane, and what it does not cut without a word."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as _ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.clusters import cluster
from support.plans.pairs import pair
from support.plans.pairs import running as router

A, B, C = "192.0.2.21", "192.0.2.22", "192.0.2.23"
API = {"name": "api", "port": 6443, "servers": [A, B]}
PLACE = "192.0.2.10 port 6443"
SERVES, GIVES_UP, DOWN = True, False, False
CUTS = (
    f"Direct return of api at {PLACE} ends, which cuts the lasting connections that its servers have. Set plane to "
    "draining first, and end it once `status` counts no more packets, or accept that with -e pair_accept_cut=true."
)
LOSES = (
    f"api at {PLACE} loses {B}, which cuts the lasting connections there. Drain each on every balancer first, and take "
    "it out once `status` counts no more packets to it, or accept that with -e pair_accept_cut=true."
)
OTHER_LIST = (
    f"api at {PLACE} gets another list of servers, and lasting connections are kept by servers that have the same: run "
    "the role direct_server on all of them."
)


def running(servers, new_connections="servers", vip="192.0.2.10"):
    """Return the plane of a host; servers by their address, with whether they get new connections."""
    listed = [{"name": each, "address": each, "serves": serves} for each, serves in servers.items()]
    return [{"name": "api", "bind": [vip], "port": 6443, "new_connections": new_connections, "servers": listed}]


def planned(plane, now, servers=(A, B), **settings):
    """Return the plan of a pair of which each member runs a plane now."""
    members = pair(services=[{**API, "plane": plane, "servers": [*servers]}], **settings)
    for member in members:
        member["host"].update(plane=now, instances=[router()])
    return _pair.plan(members)


def test_a_first_run_has_no_connections_to_speak_of():
    assert said(_pair.plan(pair(services=[{**API, "plane": "direct"}]))) == []


def said(found):
    return [line for line in found.warnings if "api at" in line]


BOTH = {A: SERVES, B: SERVES}


@pytest.mark.parametrize("plane", ["proxy", "draining"])
def test_no_change_says_nothing(plane):
    now = running(BOTH, "host") if plane == "draining" else []
    assert said(planned(plane, now)) == planned(plane, now).faults == []


KEPT = {
    "in": f"api at {PLACE} comes into direct return: the balancer keeps the connections that it has.",
    "out": f"New connections of api at {PLACE} go to the balancer, and servers keep those they have.",
    "back": f"New connections of api at {PLACE} go to servers, and the balancer keeps those it has.",
    "end": f"Direct return of api at {PLACE} ends, with the connections that servers still have.",
    "list": OTHER_LIST,
}


@pytest.mark.parametrize(
    "plane, now, what",
    [
        ("direct", [], "in"),
        ("draining", running(BOTH), "out"),
        ("direct", running(BOTH, "host"), "back"),
        ("proxy", running(BOTH, "host"), "end"),
        ("proxy", running({A: DOWN, B: DOWN}), "end"),
        ("direct", running({A: SERVES}), "list"),
        ("direct", running({**BOTH, C: GIVES_UP}), "list"),
    ],
    ids=["in", "out of use", "back", "after draining", "all are down", "one more", "one less that was drained"],
)
def test_each_change_of_a_plane_says_once_what_becomes_of_lasting_connections(plane, now, what):
    found = planned(plane, now)
    assert (found.faults, said(found)) == ([], [KEPT[what]])


@pytest.mark.parametrize(
    "plane, now, servers, fault",
    [("proxy", running(BOTH), [A, B], CUTS), ("direct", running({**BOTH, C: GIVES_UP}), [A, C], LOSES)],
    ids=["the plane", "a server"],
)
def test_what_cuts_connections_wants_a_word(plane, now, servers, fault):
    assert planned(plane, now, servers).faults == [fault]
    accepted = planned(plane, now, servers, accept_cut="true")
    assert accepted.faults == [] and said(accepted)[0] == f"{fault.partition('. ')[0]}."


def test_a_vip_that_goes_takes_its_connections_along_and_a_member_outside_the_limit_keeps_them():
    assert planned("proxy", running(BOTH, vip="192.0.2.99")).faults == []
    members = pair(services=[API])
    members[1]["host"].update(plane=running(BOTH), instances=[router()])
    members[1]["outside_limit"] = True
    assert _pair.plan(members).faults == []


def test_of_a_cluster_too():
    members = cluster(plane="proxy")
    for member in members:
        now = running({"10.0.0.10": SERVES, "10.0.0.11": SERVES}, vip="10.0.0.200")
        member["host"].update(plane=now, instances=[router("vip-10.0.0.200", addresses=["10.0.0.200/32"])])
    (fault,) = _ipi.plan(members).faults
    assert fault.startswith("Direct return of api at 10.0.0.200 port 6443 ends") and "ipi_accept_cut=true" in fault
