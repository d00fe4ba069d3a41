# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the user ask for everything that a balancer answers, while each variable of both layouts changes.

Each is answered by what the balancer has on the way and by what it has at the end, or the run is refused by its name.
"""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import configurations
from ansible_collections.onprem.lb.plugins.plugin_utils import templates
from support import answering
from support.plans.living import living
from support.plans.variables import CASES, LAYOUTS, draft, members
from support.scope import FULL

OWN = "asks-"  # begins the names of the user's checks
ENGINES = ("native", "agent")
OF_RUN = ("state", "delivery", "pods")  # which leave no balancer of ours in a unit
KNOWN = [case for case in CASES if case.variable not in (*OF_RUN, "checks")]
# Of which a value changes what is answered; all of them in the full scope.
QUICK = ("services", "preset", "masters", "vips", "answer_port", "engine", "lb_port", "ready_port", "monitor_port")
REFUSED = {
    "pair_services": "asks-443",
    "ipi_lb_port": "asks-9445",
    "ipi_ready_port": "asks-9444",
    "ipi_monitor_port": "asks-9454",
    "ipi_preset-1": "asks-9454",
}


def checks(layout, settings):
    """Return checks that ask for everything that a balancer answers in HTTP."""
    balancer = next(iter(draft(layout, members(layout, settings)).members.values())).balancer
    asked = {each["port"]: each.get("path", "/") for each in [*balancer.services, *balancer.monitors]}
    of_api = {"vips": "api"} if layout == "ipi" else {}
    return [
        {"name": f"{OWN}{port}", "url": f"http://127.0.0.1:{port}{path}", "weight": -1, **of_api}
        for port, path in asked.items()
    ]


def made(name, member):
    """Return the faults of a balancer's configuration, and what reads it by itself."""
    if member.engine == "agent":
        found = configurations.agent_model(member, name, "")
        return found["faults"], answering.by_agent, json.dumps(found["proxy"])
    found = configurations.haproxy_model(member, name)
    variables = {"model": found, "family": configurations.FAMILY}
    return found["faults"], answering.by_haproxy, templates.render("haproxy/haproxy.cfg.j2", variables)


def judged(case, engine):
    """Return what a member's checks ask in vain, and for which of them the run is refused; None if it is anyway."""
    base = {"engine": engine}
    given = {"checks": checks(case.layout, base)}
    found = living(case.layout, {**base, **given}, {**base, **case.settings, **given})
    plan = planner.draft(LAYOUTS[case.layout], found.members)
    if plan.faults:
        return None
    in_vain, refusals = set(), []
    for name, member in plan.members.items():
        if not member.balancer.services or not found.plan.members[name].balancer.services:
            continue
        _faults, reads, text = made(name, found.plan.members[name])
        asked = [each for one in found.members if one["name"] == name for each in one["host"]["asking"]["checks"]]
        asked = [each for each in asked if each["name"].startswith(OWN) and reads(text, each)]
        during = member._replace(**member.meanwhile._asdict()) if member.meanwhile else member
        for each in (during, member):
            faults, reads, text = made(name, each)
            refusals += faults
            in_vain |= {question["name"] for question in asked if not reads(text, question)} if not faults else set()
    return in_vain, refusals


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", [each for each in KNOWN if FULL or each.variable in QUICK], ids=str)
def test_what_a_user_asks_of_a_balancer_stays_or_the_run_is_refused(case, engine):
    found = judged(case, engine)
    if found is not None:
        in_vain, refusals = found
        assert in_vain == set()
        assert all(f": the check {OWN}" in refusal for refusal in refusals), refusals
    if str(case) in REFUSED:
        assert any(REFUSED[str(case)] in refusal for refusal in found[1]), found
