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

from ansible.errors import AnsibleError
from ansible.utils.display import Display
from ansible_collections.onprem.lb.plugins.filter.pods import pods_to_read
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp import engines, gate
from ansible_collections.onprem.lb.plugins.module_utils._plan.bgp.refused import refused
from ansible_collections.onprem.lb.plugins.module_utils._plan.change import changed_checks, order, undo
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver as dns_resolver
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import (
    direct,
    judged,
    outcome,
    outcome_words,
    planner,
    reading,
    several,
    units,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import departed, subnets, unused
from ansible_collections.onprem.lb.plugins.module_utils._plan.members import hosts as members
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import (
    drill_records,
    handed,
    tags,
    tls_content,
    wanted,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.resolver import TTL
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import presets as pair_presets
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths, pods, resolver_records
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import (
    AGENT,
    FRR,
    HAPROXY,
    HOOK,
    KEEPALIVED,
    NATIVE,
    ROUTERS,
    UNITS,
)
from ansible_collections.onprem.lb.plugins.plugin_utils import templates
from ansible_collections.onprem.lb.plugins.plugin_utils.programs import hook_checksum

LAYOUTS = {"ipi": ipi.LAYOUT, "pair": pair.LAYOUT}
SILENCE = 5  # seconds
CRASH = "This is a bug in the collection: {kind} in {file}, line {line}. Please report it."
BEHIND = (
    "{names} cannot be planned together with {host}, because the play takes its hosts in batches or with a free "
    "strategy: remove serial, and set strategy: linear."
)
FAILED = (
    "{names} failed earlier in this run, so {host} cannot be planned together with it: mend what failed there, or "
    "leave it out with --limit '{others}'."
)
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
    recorded = _read(given)
    found = _forecast(recorded, layout, left_out, drills)
    faults = [sentence for plan in found.plans for sentence in refused(recorded, plan, layout)]
    return no_plans(faults) if faults else as_data(found)


def layout_forecast(given, layout, left_out=(), drills=()):
    """Return ``{faults, lines}``: what is planned, and what the clusters must know. The plans themselves are large."""
    members = _read(given)
    found = _forecast(members, layout, left_out, drills)
    services = [member["settings"].get("services") for member in members]
    expired = [line for each in services for line in tls_content.expired(each, f"{layout}_services", time.time())]
    return as_data(found._replace(plans=[], lines=found.lines + found.snippets + list(dict.fromkeys(expired))))


def _forecast(given, layout, left_out, drills):
    """Return the plans of members that `_read` has returned."""
    progress, kept = progress_of(f"The forecast of {len(given)} members"), drill_records.read(drills, time.time())
    return several.draw(LAYOUTS[layout], given, functools.partial(planner.plan, progress=progress, kept=kept), left_out)


def layout_faults(given, layout, left_out=()):
    """Return what is wrong with the variables, without what only a forecast finds."""
    return several.draw(LAYOUTS[layout], _read(given), planner.draft, left_out).faults


def layout_drafts(given, layout, left_out=()):
    """Return of each plan, without a forecast, what the status compares with the members; of faulty ones the faults."""
    members = _read(given)
    opens = judged.TASKS["firewall"].check
    closing = [each["name"] for each in members if opens(each["settings"].get("firewall", True))[0] is False]
    found = several.draw(LAYOUTS[layout], members, planner.draft, left_out)
    return no_drafts(found.faults) or [
        {
            "faults": [],
            "targets": plan.targets,
            "names": _names(member.resolver for member in plan.members.values()),
            "members": {
                name: {
                    "balancer": {key: as_data(member.balancer)[key] for key in ("redirect", "services")},
                    "opens": [] if name in closing else member.firewall.every_port,
                    "left_to_user": f"{layout}_firewall" if name in closing else "",
                    "announces": [vip["address"] for vip in member.bgp.get("anycast", {}).get("vips", [])],
                }
                for name, member in plan.members.items()
            },
        }
        for plan in found.plans
    ]


def no_drafts(faults):
    return [{"faults": faults, "targets": [], "names": {}, "members": {}}] if faults else []


def _names(resolvers):
    """Return the addresses by name that the resolvers of a layout are to answer, but those of nodes.

    :param resolvers: what each member's is given; nothing where it has none
    """
    layout = next((each["layout"] for each in resolvers if each), {})
    return dns_resolver.names_of(layout, TTL, []).hosts if layout else {}


def _read(given):
    """Return the members with their settings, which the lookup `layout_member` returns as JSON."""
    return [
        {**each, "settings": json.loads(each["settings"]) if isinstance(each["settings"], str) else each["settings"]}
        for each in given
    ]


def pending(found, planned, host):
    """Return whether the checks of a member's files have found some to write, as `order.pending` does.

    :param planned: of the member, as data
    """
    return order.pending([*found, gate.compared(planned, host)])


def layout_waves(plans, hosts, checks):
    """Return the waves of a run, and before each in which the VIPs move the proof that they can: it ``is_proof``.

    :param hosts: the variables of each
    :param checks: of them, what each check of a host's files has returned
    """
    planned = {name: member for plan in plans for name, member in plan["members"].items()}
    checked = {each["inventory_hostname"]: [each.get(name, {}) for name in checks] for each in hosts}
    for each in hosts:
        name = each["inventory_hostname"]
        checked[name].append(gate.compared(planned.get(name, {}), each.get("__layout_host", {})))
    changing = [name for name, found in checked.items() if any(map(order.has_changes, found))]
    restarting = [name for name, found in checked.items() if any(map(order.starts_pods_anew, found))]
    return [
        {**as_data(wave), "is_proof": is_proof}
        for wave in order.waves(plans, changing, restarting)
        for is_proof in ([True, False] if wave.proves or wave.hands_over else [False])
    ]


def layout_unproved(wave, hosts):
    """Return a sentence for each member that could not take over, as `order.unproved` does.

    :param hosts: the variables of each; of one that cannot be reached any more nothing is proved
    """
    return order.unproved(wave, [[each["inventory_hostname"], each.get("__layout_proof", {})] for each in hosts])


def layout_last_one(plan, name, hosts):
    """Return why a member must not leave while its engine changes, as `engines.last_one` does.

    :param hosts: the variables of each; of one that cannot be reached any more nothing is proved
    """
    seen = [engines.Proof(each["inventory_hostname"], each.get("__layout_proof", {})) for each in hosts]
    return engines.last_one(plan, name, seen)


def layout_tried(plans, hosts, prefix):
    """Return what the trial of changed checks says, as `changed_checks.tried` does.

    :param hosts: the variables of each; a check that did not run there says nothing
    """
    tries = [[each["inventory_hostname"], each.get("__layout_tried", {})] for each in hosts]
    return changed_checks.tried(plans, tries, prefix)


def auth_pass(given):
    """Return the password that the user set, else the one in use, else a fresh one of 8 characters.

    VRRP compares no more of it.
    """
    return members.auth_pass(_read(given), new_uuid=lambda: str(uuid.uuid4()))


def layout_reads(definition, record, configs, script_user):
    """Return the parameters with which `host_info` reads a member.

    :param record: the member, as the lookup `layout_member` returns it
    :param configs: the configuration files of haproxy and keepalived, by program
    """
    (settings,) = (each["settings"] for each in _read([record]))
    of_pods = pods_to_read(settings.get("delivery"))
    return reading.parameters(definition, settings, configs, script_user, hook_checksum(), pair_presets.NAMED, of_pods)


def layout_outside(record, name, variables, of_play, prefix):
    """Return the record of a member outside --limit, of which the inventory says what may differ between members.

    What the inventory sets for neither host is the play's, for both.

    :param record: of the host of the play that acts for it, as the lookup `layout_member` returns it
    :param variables: of the member; likewise ``of_play``, those of that host
    """
    ((settings, members),) = ((each["settings"], each["members"]) for each in _read([record]))
    unset = {key: LAYOUTS[prefix].schema[key].default for key in judged.PER_MEMBER if key in settings}
    given = {key: f"{prefix}_{key}" for key in unset}
    usual = {key: unset[key] if full in of_play else settings[key] for key, full in given.items()}
    own = {key: _of_host(variables, full, usual[key]) for key, full in given.items()}
    return {
        "name": name,
        "address": variables.get("ansible_host", name),
        "groups": variables["group_names"],
        "members": members,
        "outside_limit": True,
        "host": None,
        "settings": json.dumps({**settings, **own}, default=str),
    }


def _of_host(variables, name, usual):
    """Return a variable of a member; what is usual where it is computed from `hostvars`, which are not there for it."""
    try:
        return variables.get(name, usual)
    except AnsibleError:
        return usual


def layout_left_out(given, hosts):
    """Return hosts of the inventory's other pairs, which --limit leaves out, as `layout_plans` takes them.

    :param given: the variables of each
    :param hosts: of all pairs; one that names no members of its own has these
    """
    unset = {"pair_members": hosts, "pair_vips": [], "pair_vrid": ""}
    return [[each["inventory_hostname"], *(each.get(name, value) for name, value in unset.items())] for each in given]


def members_behind(given, host, failed=()):
    """Return why members cannot be planned: one has failed, or a play in batches has not recorded all of them.

    :param given: the variables of each
    :param failed: the play's hosts that have failed, of which an earlier play may have recorded what is no more so
    """
    names = [each["inventory_hostname"] for each in given]
    gone = [name for name in names if name in failed]
    if gone:
        return [FAILED.format(names=", ".join(gone), host=host, others=":".join(f"!{name}" for name in gone))]
    behind = [each["inventory_hostname"] for each in given if "__layout_member" not in each]
    return [BEHIND.format(names=", ".join(behind), host=host)] if behind else []


def layout_units(plan, host, definition, settings, configs, *, record, agents, **about):
    """Return what each stage does with the helper units of a member, as `units.by_stage` does.

    :param definition: the layout, as its role defines it
    :param record: of the members, as JSON
    :param agents: what `program` returned of each program
    :param about: the other variables that `units.About` names
    """
    about.update({key: definition[key] for key in ("prefix", "shutdown_before")}, settings=settings, configs=configs)
    about.update(record=f"{record}\n", agent=next(iter(agents), {}))
    return as_data(units.by_stage(units.About(plan, host, templates.render, **about)))


def planned_undo(plan, name, **run):
    """Return a member's part in the undo of a run, as `undo.part` does.

    :param run: what `undo.Run` names
    """
    return undo.part(plan, name, undo.Run(**run))


NAMED = {
    "follow": paths.FOLLOWING,
    "direct": paths.PLANE,
    "shutdown": paths.SHUTDOWN,
    "resolver": paths.RESOLVER,
    "correction": paths.CORRECTION,
    "answers": paths.ANSWERS,
    "hook": HOOK,
    "follow_state": paths.FOLLOW_STATE,
    "direct_down_file": direct.DOWN_FILE,
    "direct_archive": paths.archive("direct"),
    "routers": [engine.router for engine in UNITS.values()],
    "every_router": [*ROUTERS],
    "router_pod": pods.ROUTER,
    "follow_pod": pods.FOLLOW,
    "pods": [*pods.NAMES],
    "pod_files": pods.RESOURCES,
    "units": [*paths.EVERY_UNIT],
}


def layout_paths(haproxy="", keepalived=""):
    """Return the units and paths that tasks name, by the words that they have for them.

    :param haproxy: its configuration file, if the user has named one; likewise that of keepalived
    """
    given = {HAPROXY: haproxy, KEEPALIVED: keepalived}
    return {**NAMED, "configs": {name: given[name] or path for name, path in paths.DEFAULTS.items()}}


def layout_departed(former, found, vips, retired, prefix):
    """Return what becomes of a former member, as `departed.judged` does."""
    return as_data(departed.judged(former, found, vips, retired, prefix))


def layout_removal(prefix, down_file):
    """Return how the helper units of a member go that is removed."""
    return as_data(units.removal(prefix, down_file))


def layout_components(plan):
    """Return the component roles that set a member up, in the order of their checks.

    :param plan: of the member, as data
    """
    balances, routes = plan["balancer"]["services"] != "[]", bool(plan["router"]["instances"])  # JSON
    if plan["pods"]:
        return []
    announcing = [FRR] * bool(plan.get("bgp"))
    if plan["engine"] == NATIVE:
        return [HAPROXY] * balances + [KEEPALIVED] * routes + announcing
    return [AGENT] * (routes or bool(announcing)) + announcing


def layout_host_needs(host, plan):
    """Return a host as `host_info` returned it, without the missing packages that its plan does not need.

    :param plan: of the member, as data
    """
    return unused.without_unneeded(host, layout_components(plan))


def layout_handed(plan, **about):
    """Return what each component role is handed, as `handed.to_components` does."""
    return handed.to_components(plan, handed.About(**about))


def layout_statistics(plan):
    """Return the variables of a member's statistics page, in the order of `outcome.STATISTICS`, if it has a balancer.

    :param plan: of the member, as data
    """
    role = HAPROXY if plan["engine"] == NATIVE and not plan["pods"] else AGENT
    return [f"{role}_stats_{key}" for key in outcome.STATISTICS] if plan["balancer"]["services"] != "[]" else []


def layout_steps(registered, state, **read):
    """Return what the tasks of a run have changed on a host, or would in check mode.

    :param registered: what they returned, in the order of `outcome_words.results`
    :param read: as `outcome_words.words` takes it
    """
    known = dict(zip(outcome_words.results(state), registered))
    return outcome.steps(outcome_words.words(state, known, read), registered)


def layout_outcome(given, outside, dry, every):
    """Return the last lines of a run, as `outcome.lines` does.

    :param given: with the values of the ``statistics``, as `outcome.STATISTICS` has them, and the plan's ``stats_port``
    :param every: the members of all plans
    """
    silent = [each["name"] for each in every if "silent" in each]
    members = [{**each, "statistics": outcome.statistics(each["statistics"], each["stats_port"])} for each in given]
    wanted = _names(each.get("resolver") for each in given)
    left = {each["name"]: (each.get("host") or {}).get("named", {}) for each in every if each["name"] in outside}
    return outcome.lines(members, outside, dry, silent, resolver_records.outdated(wanted, left))


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "layout_components": layout_components,
            "layout_host_needs": layout_host_needs,
            "layout_drafts": with_faults(layout_drafts, no_drafts),
            "layout_departed": layout_departed,
            "layout_faults": with_faults(layout_faults, list),
            "layout_forecast": with_faults(layout_forecast, no_plans),
            "layout_handed": layout_handed,
            "layout_last_one": layout_last_one,
            "layout_left_out": layout_left_out,
            "layout_outside": layout_outside,
            "layout_paths": layout_paths,
            "layout_plans": with_faults(layout_plans, no_plans),
            "layout_reads": layout_reads,
            "layout_removal": layout_removal,
            "layout_in_force": wanted.is_in_force,
            "layout_obstacles": reading.obstacles,
            "layout_outcome": layout_outcome,
            "layout_results": outcome_words.results,
            "layout_removed": outcome.removed,
            "layout_stages": tags.stages,
            "layout_serving": engines.asked,
            "layout_statistics": layout_statistics,
            "layout_steps": layout_steps,
            "layout_tried": layout_tried,
            "layout_units": layout_units,
            "layout_unproved": layout_unproved,
            "layout_waves": layout_waves,
            "pending": pending,
            "late_heartbeat": undo.is_late,
            "late_heartbeats": undo.late,
            "members_auth_pass": auth_pass,
            "members_behind": members_behind,
            "planned_undo": planned_undo,
            "vrrp_forecast": forecast.vrrp_forecast,
        }
