# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Turns variables and host facts into a plan and its forecast.

Each member that a filter takes is ``{name, address, members, settings, host}``: the names of its pair's members in
order, the role's variables without the prefix (which may be JSON), and what `host_info` returned, or None where it was
not read. One that does not answer is ``silent``. ``left_out`` are the hosts of the inventory's other pairs, each
``[name, pair_members, pair_vips, pair_vrid]``: no new VIP gets a VRID that theirs may have. ``drills``
are the records that the lookup `drill_history` returns: what they measured stands beside the forecast.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import traceback
import uuid

from ansible.utils.display import Display
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import changed_checks, order
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import outcome, planner, reading, several, units
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import departed, subnets
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import hosts as members
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import drill_records, wanted
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import api as pair_api
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths, pods
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import HOOK, ROUTERS, UNITS
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

LAYOUTS = {"ipi": ipi.LAYOUT, "pair": pair.LAYOUT}
SILENCE = 5  # seconds
CRASH = "This is a bug in the collection: {kind} in {file}, line {line}. Please report it."
DISPLAY = Display()


def with_faults(function, refused):
    """Have a filter return a fault that names netaddr if the controller lacks it, and one in place of a crash.

    Its task hides what Ansible says, and Python's own words may quote a secret.

    :param refused: makes what the filter returns of a list of faults
    """

    @functools.wraps(function)
    def guarded(*arguments):
        if subnets.NETADDR_MISSING:
            return refused([f"The controller lacks the Python package netaddr: install it for {sys.executable}."])
        try:
            return function(*arguments)
        except Exception as crash:
            place = traceback.extract_tb(crash.__traceback__)[-1]
            return refused([CRASH.format(kind=type(crash).__name__, file=os.path.basename(place[0]), line=place[1])])

    return guarded


def no_plans(faults):
    return as_data(several.Plans(faults))


def progress_of(what, clock=time.monotonic, show=DISPLAY.display):
    """Return a callback that tells the user every few seconds how far a long computation is."""
    last = clock()

    def progress(done, steps):
        nonlocal last
        now = clock()
        if now - last >= SILENCE:
            last = now
            show(f"{what}: {done} of {steps} steps are done.")

    return progress


def layout_plans(given, layout, left_out=(), drills=()):
    """Return ``{faults, plans, lines}``, the plans as data."""
    return as_data(_forecast(_read(given), layout, left_out, drills))


def layout_forecast(given, layout, left_out=(), drills=()):
    """Return ``{faults, lines, snippets}``: what is planned, without the plans, which are large."""
    return as_data(_forecast(_read(given), layout, left_out, drills)._replace(plans=[]))


def _forecast(given, layout, left_out, drills):
    """Return the plans of members that `_read` has returned."""
    progress, kept = progress_of(f"The forecast of {len(given)} members"), drill_records.read(drills, time.time())
    return several.draw(LAYOUTS[layout], given, functools.partial(planner.plan, progress=progress, kept=kept), left_out)


def layout_faults(given, layout, left_out=()):
    """Return what is wrong with the variables, without what only a forecast finds."""
    return several.draw(LAYOUTS[layout], _read(given), planner.draft, left_out).faults


def _read(given):
    """Return the members with their settings, which the lookup `layout_member` returns as JSON."""
    return [
        {**each, "settings": json.loads(each["settings"]) if isinstance(each["settings"], str) else each["settings"]}
        for each in given
    ]


def layout_waves(plans, checked):
    """Return the waves of a run.

    :param checked: ``[name, what each check of its files returned, ...]`` of each host
    """
    changing = [name for name, *found in checked if any(map(order.has_changes, found))]
    restarting = [name for name, *found in checked if any(map(order.starts_pods_anew, found))]
    return as_data(order.waves(plans, changing, restarting))


def auth_pass(given):
    """Return the password that the user set, else the one in use, else a fresh one of 8 characters.

    VRRP compares no more of it.
    """
    return members.auth_pass(_read(given), new_uuid=lambda: str(uuid.uuid4()))


def layout_reads(definition, settings, given, of_pods=()):
    """Return the parameters with which `host_info` reads a member."""
    return reading.parameters(definition, settings, given, pair_api.PRESETS, of_pods)


def layout_units(plan, host, about):
    """Return what each stage does with the helper units of a member, as `units.by_stage` does.

    :param about: the other variables that `units.About` names
    """

    return as_data(units.by_stage(units.About(plan, host, templates.render, **about)))


NAMED = {
    "follow": paths.FOLLOWING,
    "direct": paths.PLANE,
    "shutdown": paths.SHUTDOWN,
    "resolver": paths.RESOLVER,
    "correction": paths.CORRECTION,
    "answers": paths.ANSWERS,
    "hook": HOOK,
    "follow_state": paths.FOLLOW_STATE,
    "direct_archive": paths.archive("direct"),
    "routers": [engine.router for engine in UNITS.values()],
    "every_router": [*ROUTERS],
    "router_pod": pods.ROUTER,
    "follow_pod": pods.FOLLOW,
    "pods": [*pods.NAMES],
    "pod_files": pods.RESOURCES,
    "units": [*paths.EVERY_UNIT],
    "configs": paths.DEFAULTS,
}


def layout_paths(names):
    """Return the units and paths that tasks name, by the words that they have for them."""
    return {name: NAMED[name] for name in names}


def layout_departed(former, found, vips, retired, prefix):
    """Return what becomes of a former member, as `departed.judged` does."""
    return as_data(departed.judged(former, found, vips, retired, prefix))


def layout_removal(prefix, down_file):
    """Return how the helper units of a member go that is removed."""
    return as_data(units.removal(prefix, down_file))


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "layout_departed": layout_departed,
            "layout_faults": with_faults(layout_faults, list),
            "layout_forecast": with_faults(layout_forecast, no_plans),
            "layout_paths": layout_paths,
            "layout_plans": with_faults(layout_plans, no_plans),
            "layout_reads": layout_reads,
            "layout_removal": layout_removal,
            "layout_in_force": wanted.is_in_force,
            "layout_outcome": outcome.lines,
            "layout_removed": outcome.removed,
            "layout_steps": outcome.steps,
            "layout_tried": changed_checks.tried,
            "layout_units": layout_units,
            "layout_unproved": order.unproved,
            "layout_waves": layout_waves,
            "members_auth_pass": auth_pass,
            "vrrp_forecast": forecast.vrrp_forecast,
        }
