# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every variable of both layouts is changed on a living one of three members, alone and in pairs, there and back.

What the plan announces is what happens: nobody asks in vain, no VIP moves or is gone unannounced, and none is refused.
The way back is also what a rollback does.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from typing import NamedTuple

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import presets
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from support.plans import steps
from support.plans.living import living
from support.plans.runs import Run
from support.plans.variables import CASES, LAYOUTS, members
from support.scope import FULL

SEED = 45
PAIRS = 1200 if FULL else 24
ENGINES = ("native", "agent")
# What a refusal names that another run may change.
A_SMALLER_RUN = re.compile(
    r"leave the change of (the members that carry [\w.:, ]+|(ipi|pair)_engine|"
    r"((VRID|VRRP version|interval|password|multicast)(, )?)+)( and of .+)? for a second run"
)
# The balancer drops what a check or the redirect asks for until that changes, too: see `runs.on_the_way`.
ASKED = ("_port", "preset", "track_weight")  # in the names of variables that say for what a balancer is asked
# One VRID on two links, and what is changed there.
TWO_LINKS = {"vips": [{"address": "192.0.2.10", "vrid": 51}, {"address": "198.51.100.10", "vrid": 51}]}
ON_TWO_LINKS = {
    "multicast": {"multicast": True},
    "version": {"vrrp_version": 3},
    "interval": {"advert_interval": 2},
    "password": {"auth_pass": "an0ther1"},
    "preemption": {"preempt": False},
    "priorities": {"priorities": [200, 199, 150]},
    "sync": {"sync": True},
    "holders": {"vips": [{**vip, "first": "lb3"} for vip in TWO_LINKS["vips"]]},
    "one VRID": {"vips": [TWO_LINKS["vips"][0], {"address": "198.51.100.10", "vrid": 77}]},
    "one VIP": {"vips": TWO_LINKS["vips"][1:]},
    "another VIP": {"vips": [TWO_LINKS["vips"][0], {"address": "198.51.100.20", "vrid": 51}]},
    "engine": {"engine": "agent"},
}
# The kubelet replaces no agent in units.
REFUSED = {("ipi_delivery", "agent")}


class Change(NamedTuple):
    """A change of a living layout.

    :ivar variables: whose other values there are, before or after
    """

    layout: str
    variables: tuple
    before: dict
    after: dict
    how: str

    def __str__(self):
        return "-".join([*self.variables, self.how])


def alone():
    """Yield the change of each variable, there and back."""
    for case in CASES:
        for engine in ENGINES:
            if (str(case), engine) not in REFUSED:
                base = {"engine": engine}
                changed = {**base, **case.settings}
                yield Change(case.layout, (str(case),), base, changed, engine)
                yield Change(case.layout, (str(case),), changed, base, f"{engine}-back")


def between_presets():
    """Yield the change of each preset of a cluster into each other one, and of a master into a worker with each."""
    for engine, (before, after) in itertools.product(ENGINES, itertools.permutations(presets.PRESETS, 2)):
        base = {"engine": engine}
        yield Change("ipi", (before, after), {**base, "preset": before}, {**base, "preset": after}, engine)
    for engine, preset in itertools.product(ENGINES, presets.PRESETS):
        base = {"engine": engine, "preset": preset}
        yield Change("ipi", (preset, "one master less"), base, {**base, "masters": ["master-0", "master-2"]}, engine)


def on_two_links():
    """Yield what changes on two links that share a VRID, there and back."""
    for number, (what, settings) in enumerate(ON_TWO_LINKS.items()):
        for base in [{"engine": engine, **TWO_LINKS} for engine in (ENGINES if FULL else ENGINES[number % 2 :][:1])]:
            yield Change("pair", (what,), base, {**base, **settings}, base["engine"])
            yield Change("pair", (what,), {**base, **settings}, base, f"{base['engine']}-back")


def in_pairs():
    """Yield changes of two variables, and of the engine, from two others."""
    chosen = random.Random(SEED)
    known = [case for case in CASES if case.variable != "delivery"]
    for number in range(PAIRS):
        one, *others = chosen.sample([case for case in known if case.layout == ("ipi", "pair")[number % 2]], 3)
        engines = chosen.choices(ENGINES, k=2)
        before = {"engine": engines[0], **one.settings}
        planned = {"engine": engines[1], **others[0].settings, **others[1].settings}
        yield Change(one.layout, (str(one), *map(str, others)), before, planned, "-to-".join(engines))


@functools.lru_cache(maxsize=None)
def is_layout(layout, settings):
    """Return whether settings, as JSON, are those of a layout: each is a side of several changes."""
    return not planner.draft(LAYOUTS[layout], members(layout, json.loads(settings))).faults


def played(change):
    """Return what is wrong with a run that makes a change; None if one of the two sides is no layout."""
    if not all(is_layout(change.layout, json.dumps(settings)) for settings in (change.before, change.after)):
        return None
    found = living(change.layout, change.before, change.after)
    plan = planner.draft(LAYOUTS[change.layout], found.members)
    return plan.faults or steps.play(Run(found.plan, plan, found.members, found.auth_pass))


EVERY = [*alone()]
QUICK = [
    change for number, change in enumerate(EVERY) if number % 10 == 0 or any(each in str(change) for each in ASKED)
]


@pytest.mark.parametrize("change", [*between_presets()], ids=str)
def test_every_preset_of_a_cluster_changes_into_every_other_as_announced(change):
    assert played(change) == []


@pytest.mark.parametrize("change", EVERY if FULL else QUICK, ids=str)
def test_a_variable_that_changes_does_what_the_plan_announces(change):
    assert played(change) == []


@pytest.mark.parametrize("change", [*on_two_links()], ids=str)
def test_what_changes_on_two_links_with_one_vrid_does_what_the_plan_announces(change):
    assert played(change) == []


# The sole router asks a balancer that its member does not have yet. Found among the pairs of the full scope.
SOLE_ROUTER = Change("ipi", ("preset and engine",), {"engine": "native"}, {"engine": "agent", "preset": "ocp45"}, "")


@pytest.mark.parametrize("change", [SOLE_ROUTER, *in_pairs()], ids=str)
def test_two_variables_that_change_do_what_the_plan_announces_or_are_refused(change):
    wrong = played(change)
    assert not wrong or (wrong[0].startswith("No safe way leads") and A_SMALLER_RUN.search(wrong[0])), wrong
