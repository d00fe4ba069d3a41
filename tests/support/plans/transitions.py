# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pair that runs already, and the plan that changes it."""

from __future__ import annotations

import json

from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import transition, turns
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

from support.plans.pairs import member

PASSWORD = "0f3a9c1e"
VIP = "192.0.2.10"


def living(
    count=2,
    engine="native",
    version="2.2.7",
    holder="lb1",
    before=None,
    joining=(),
    shared=(),
    to_engine="",
    moved=(),
    keeps_source=False,
    **changes,
):
    """The members of a pair as `host_info` returns them, with the settings of a run that changes it.

    :param before: the settings that run
    :param joining: the members that run nothing yet
    :param shared: other VIPs that run in the same instance
    :param to_engine: the engine that the run gives them; by default the one that runs
    :param moved: the members whose hosts have got another address
    :param keeps_source: whether these still have the one that their routers send from
    """
    settings = {"auth_pass": PASSWORD, "engine": engine, **(before or {})}
    numbers = range(1, count + 1)
    old = [number for number in numbers if f"lb{number}" not in joining]
    running = planner.draft(_pair.LAYOUT, [member(number, **settings) for number in old]).members
    members = [member(number, **{**settings, "engine": to_engine or engine, **changes}) for number in numbers]
    for one in members:
        if one["name"] in running:
            instances = running[one["name"]].router.instances
            written = [{**each, "auth_pass": settings["auth_pass"]} for each in instances]
            known = facts.agent_instances(json.dumps({"instances": written}))
            for each in known:
                each["addresses"] = [*each["addresses"], *(f"{vip}/32" for vip in shared)]
            units = [*engines.UNITS[engine]]
            one["host"].update(instances=known, own_units=units, active_units=units, keepalived_version=version)
        if one["name"] in moved:
            _move(one["host"]["addresses"], keeps_source)
        if one["name"] == holder:
            mac = one["host"]["addresses"][1]["mac"]
            one["host"]["addresses"].append({"interface": "eth0", "address": VIP, "prefix": 32, "mac": mac})
    return members


def _move(addresses, keeps_source):
    """Give a host another address, which the plan takes."""
    (old,) = [info for info in addresses if info["address"].startswith("192.0.2.")]
    new = {**old, "address": f"192.0.2.10{old['address'][-1]}"}
    addresses[addresses.index(old)] = new
    addresses.extend([old] if keeps_source else [])


def turns_of(members):
    """What each of the members runs and will run."""
    plan = planner.draft(_pair.LAYOUT, members)
    assert plan.faults == []
    return turns.turns(members, plan.members, members[0]["settings"]["auth_pass"], plan.vips), plan


def to_play(members):
    """The way of a run as it is played."""
    given, plan = turns_of(members)
    return transition.to_play(given, plan.sole_router, plan.migration_order)


def without_care(members):
    """The same run without its order, and if no router was stopped meanwhile: all members change at any time."""
    given, _plan = turns_of(members)
    way = transition.to_play(given, "", [])
    return way._replace(waves=[[step for wave in way.waves for step in wave]])
