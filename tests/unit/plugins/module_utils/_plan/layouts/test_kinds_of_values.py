# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each variable of a layout, with a value of each kind: it is taken, or refused in one sentence that names it."""

from __future__ import annotations

import re

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.kinds import PYTHONS, VALUES, is_of_mappings
from support.plans import clusters, pairs
from support.variable_tables import options

# What each variable may be besides null and empty, by its name without the layout's prefix. A line break ends a text.
TRUTH = """
    accept_cut accept_routed_only accept_split bootstrap_complete break_lock downgrade firewall multicast preempt
    one_instance reload_certificates sync take_over track_events verify"""
NUMBERS = "follow_drain_for follow_not_ready_for listen preempt_delay track_interval undo_after"
WORDS = "auth_pass domain retired subdomain"
TAKEN = {
    **dict.fromkeys(TRUTH.split(), {"true"}),
    **dict.fromkeys(NUMBERS.split(), {"number"}),
    **dict.fromkeys(WORDS.split(), {"text"}),
    # Who the members are is judged where the inventory's groups are known (tests/unit/playbooks/test_inputs.py).
    **dict.fromkeys(("hosts", "members", "workers"), set(VALUES)),
    # With a reach of VRRP they are said to have no effect.
    **dict.fromkeys(("bgp", "bgp_peers"), set(VALUES)),
    "pods": {"mapping"},  # judged where the balancers are pods
}
SENTENCE_OF = {"dns": "domain"}  # whose names need one
MEMBERS = {"pair": (pair.LAYOUT, pairs.pair), "ipi": (ipi.LAYOUT, clusters.cluster)}


@pytest.mark.parametrize("name", [*options("pair"), *options("ipi")])
def test_a_value_is_taken_or_refused_in_one_sentence_that_names_its_variable(name):
    prefix, _line, key = name.partition("_")
    layout, members = MEMBERS[prefix]
    named = re.compile(rf"({name}|{prefix}_{SENTENCE_OF.get(key, key)})\b")
    for kind, value in VALUES.items():
        faults = planner.draft(layout, members(**{key: value})).faults
        if kind in TAKEN.get(key, ()):
            assert faults == [], kind
        elif faults or kind not in ("null", "empty text"):
            assert len(faults) == 1 or is_of_mappings(value), (kind, faults)
            assert all(map(named.search, faults)), (kind, faults)
            assert not PYTHONS.search(faults[0].replace(str(value), "")), faults
