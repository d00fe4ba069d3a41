# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this tree makes of an inventory: each file that the programs of a member read, and the plan, in lines."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import units
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner, several
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import MemberPlan, Plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

from support.inventories import GROUPS, Inventory
from support.paths import EXAMPLES
from support.plans import variables
from support.rendering import haproxy, haproxy_unit, keepalived, keepalived_unit

Lines = Dict[str, List[str]]  # of each file, by its name
LAYOUTS = {"ipi": ipi.LAYOUT, "pair": pair.LAYOUT}
PASSWORD = "0f3a9c1e"
# How a run goes, which no file shows, and what needs more of a host than the cases know.
LEFT_OUT = {*variables.OF_RUN, "hosts", "take_over", "delivery", "pods", "plane", "verify"}


class Case(NamedTuple):
    """An inventory, as its members' settings, with an engine for all of them."""

    name: str
    layout: str
    members: List[Dict[str, Any]]  # as `planner` takes them
    haproxy: Dict[str, Any]  # what the inventory sets of that role
    forecast: bool = False


def cases() -> Iterator[Case]:
    """Return what is rendered: each example, each preset and each variable by itself, with both engines."""
    for path in sorted(EXAMPLES.iterdir()):
        inventory = Inventory(path)
        for layout in inventory.layouts():
            members = [_of_inventory(inventory, layout, host) for host in inventory.hosts(layout)]
            yield from _with_engines(path.stem, layout, members, inventory.variables(members[0]["name"], "haproxy_"))
    for layout in LAYOUTS:
        yield from _with_engines(layout, layout, variables.members(layout), {}, forecast=True)
    for case in variables.CASES:
        if case.variable not in LEFT_OUT:
            members = variables.members(case.layout, case.settings)
            yield from _with_engines(str(case), case.layout, members, {}, forecast=case.variable == "preset")


def _of_inventory(inventory: Inventory, layout: str, host: str) -> Dict[str, Any]:
    prefix = f"{layout}_"
    settings = {name[len(prefix) :]: value for name, value in inventory.variables(host, prefix).items()}
    groups = {group.partition("_")[2]: inventory.group(group) for group in GROUPS["ipi"] if layout == "ipi"}
    return {
        "name": host,
        "address": inventory.variables(host, "ansible_host").get("ansible_host", host),
        "members": settings.get("members") or inventory.hosts(layout),
        "settings": {**groups, **settings},
        "host": None,
        "outside_limit": False,
    }


def _with_engines(
    name: str, layout: str, members: List[Dict[str, Any]], own: Dict[str, Any], forecast: bool = False
) -> Iterator[Case]:
    for engine in (engines.NATIVE, engines.AGENT):
        members = [{"members": [each["name"] for each in members], "address": "", **each} for each in members]
        chosen = [{**member, "settings": {**member["settings"], "engine": engine}} for member in members]
        yield Case(f"{name} {engine}", layout, chosen, own, forecast)


def render(case: Case) -> Lines:
    """Return the files of the first member and of the last, and the plan."""
    draw = planner.plan if case.forecast else planner.draft
    found = several.draw(LAYOUTS[case.layout], case.members, draw)
    lines: Lines = {"plan": [f"fault {fault}" for fault in found.faults]}
    for plan in found.plans:
        lines["plan"] += _plan(plan)
        names = [*plan.members]
        for name in dict.fromkeys((names[0], names[-1])):
            for file, text in _files(name, plan.members[name], case.haproxy).items():
                lines[f"{name} {file}"] = text
    return lines


def _files(name: str, member: MemberPlan, own: Dict[str, Any]) -> Lines:
    files = _agent(member) if member.engine == engines.AGENT else _native(name, member, own)
    return {**files, **_nft(member)}


def _plan(plan: Plan) -> Iterator[str]:
    for vip in plan.vips:
        yield f"vip {vip.address} vrid {vip.vrid} order {' '.join(vip.order)}"
    for name, member in plan.members.items():
        for key, value in member.firewall._asdict().items():
            yield f"firewall {key} of {name} {json.dumps(value)}"
        yield f"unit of {name} {' '.join(member.expected.units)}"
        yield f"program of {name} {' '.join(member.expected.programs)}"
    for line in plan.outages:
        yield f"{line['event']} of {line['member']} {line['vip']} to {line['after']} in {line['outage_ms']} ms"


def _native(name: str, member: MemberPlan, own: Dict[str, Any]) -> Lines:
    given = _balancer(member)
    services = {key: given.pop(key) for key in ("services", "monitors")}
    balancer = {**{f"haproxy_{key}": value for key, value in given.items()}, **own}
    router = {**member.router._asdict(), "auth_pass": PASSWORD}
    found = {"keepalived.conf": keepalived(router, name), "keepalived.service": keepalived_unit()}
    if services["services"]:
        found.update({"haproxy.cfg": haproxy(**services, **balancer), "haproxy.service": haproxy_unit(**balancer)})
    return {file: _lines(text) for file, text in found.items()}


def _agent(member: MemberPlan) -> Lines:
    given = _balancer(member)
    known = {key: value for key, value in given.items() if key in agent.SETTINGS}
    found = agent.translate({**member.router._asdict(), **known, "auth_pass": PASSWORD})
    assert found["faults"] == []
    lines: Lines = {}
    for daemon in (engines.Daemon("vrrp"), engines.Daemon("proxy")):
        if found[daemon.name]:
            lines[f"{daemon.name}.json"] = sorted(_flat("", found[daemon.name]))
            options = units.Options(**found["options"])
            lines[f"{daemon.name}.service"] = _lines(units.unit(daemon, found[daemon.name], units.Paths(), options))
    return lines


def _balancer(member: MemberPlan) -> Dict[str, Any]:
    balancer = member.balancer
    given = {key: getattr(balancer, key) for key in ("services", "monitors", "down_file", "answer_port")}
    timeouts = {f"timeout_{key}": value for key, value in balancer.timeouts.items()}
    return {**given, **timeouts, **({"stats_port": balancer.stats_port} if balancer.stats_port else {})}


def _nft(member: MemberPlan) -> Lines:
    redirect = member.balancer.redirect
    texts = {
        "redirect.nft": nft_redirect.ruleset(redirect.vips, redirect.ports) if redirect else "",
        "guard.nft": member.balancer.guard,
    }
    return {file: _lines(text) for file, text in texts.items() if text}


def _lines(text: str) -> List[str]:
    """Return the lines of a file, each after those that it is indented below: `backend web > timeout check 2s`."""
    found, above = [], []  # type: List[str], List[Tuple[int, str]]
    for line in text.replace("\\\n", "").splitlines():
        depth, words = len(line) - len(line.lstrip()), line.strip().rstrip("{").rstrip()
        if words in ("", "}") or words.startswith("#"):  # what no program reads, and the end of a block
            continue
        above = [*((before, outer) for before, outer in above if before < depth), (depth, words)]
        found.append(" > ".join(outer for _depth, outer in above))
    return found


def _flat(path: str, value: Any) -> Iterator[str]:
    """Return a line for each value in mappings and lists: `checks:storage.timeout 5` is of the check of that name."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{path}.{key}" if path else key, item)
    elif isinstance(value, list):
        for item in value:
            named = isinstance(item, dict) and "name" in item
            yield from _flat(f"{path}:{item['name']}" if named else path, item)
    else:
        yield f"{path} {json.dumps(value)}"
