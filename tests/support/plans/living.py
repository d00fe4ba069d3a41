# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A layout that lives with some settings, as a run with others finds it."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._plan.change import turns
from ansible_collections.onprem.lb.plugins.module_utils._plan.members.hosts import auth_pass
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Plan

from support.plans.hosts import Files, after, written
from support.plans.variables import Settings, draft, members

PASSWORD = "0f3a9c1e"  # where the settings have none


class Living(NamedTuple):
    """A layout before a run."""

    plan: Plan  # of the run before
    files: Dict[str, Files]  # that it has left on each member
    members: List[Dict[str, Any]]  # with the settings of the next one
    auth_pass: str  # of the next one


def living(layout: str, before: Settings, planned: Settings) -> Living:
    """Return a layout that runs one configuration, for a run to another one."""
    fresh = members(layout, before)
    plan, password = draft(layout, fresh), auth_pass(fresh, lambda: PASSWORD)
    files = {name: written(plan, name, password) for name in plan.members}
    settings = {each["name"]: each["settings"] for each in members(layout, planned)}
    found = [{**each, "settings": settings[each["name"]]} for each in after(fresh, plan, files)]
    return Living(plan, files, found, auth_pass(found, lambda: PASSWORD))


def turns_of(layout: str, before: Settings, planned: Settings) -> List[turns.Turn]:
    """Return what each member of such a layout runs and will run."""
    found = living(layout, before, planned)
    plan = draft(layout, found.members)
    return turns.turns(found.members, plan.members, found.auth_pass, plan.vips)
