# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every picture of the documentation, with what it shows: the plans of the READMEs' inventories, and what was measured.

Nothing is written twice: what a plan, a forecast or a table of the README says is read from there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Tuple

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast.forecast import SWITCH_MS
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import MemberPlan, Plan, Vip
from ansible_collections.onprem.lb.plugins.module_utils._shared import events
from support.documents import blocks, row
from support.inventories import Inventory
from support.paths import DOCS, PICTURES, README, ROLES
from support.playbooks import play, printed

from . import choice, direct, node, pair, redirect, terminal, timeline

FAST = {"vrrp_version": 3, "advert_interval": 0.1}  # the fast setting of the role's README
FORECAST = "onprem.lb.forecast"


def planned(layout: str, document: Path, language: str, **settings: Any) -> Plan:
    """Return the plan of the first inventory in a document."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"inventory.{language}")
        path.write_text(blocks(document, language)[0])
        plan = Inventory(path).plan(layout, **settings)
    assert not plan.faults, plan.faults
    return plan


def outage(plan: Plan, event: str) -> int:
    """Return for how many milliseconds the first VIP is gone at most."""
    return next(line["outage_ms"] for line in plan.outages if line["event"] == event)


def draw_pair() -> str:
    plan = planned("pair", README, "yaml")
    (vip,) = plan.vips
    found = {name: plan.members[name].router.instances[0] for name in vip.order}
    statistics = yaml.safe_load((ROLES / "haproxy" / "defaults" / "main.yml").read_text())
    return pair.draw(
        pair.Pair(
            vip=vip.address,
            vrid=vip.vrid,
            interval=plan.advert_interval,
            balancers=[pair.Balancer(name, each["source"], each["priority"]) for name, each in found.items()],
            groups=_groups(plan.members[vip.order[0]].balancer.services),
            statistics=f"{statistics['haproxy_stats_address']}:{statistics['haproxy_stats_port']}",
        )
    )


def _groups(services: List[Dict[str, Any]]) -> List[pair.Group]:
    """Return the servers, those of several services once, with all ports."""
    groups: Dict[str, pair.Group] = {}
    for service in services:
        addresses, check = [server["address"] for server in service["servers"]], service["check"]
        asked = check["type"] if check["type"] == "tcp" else f"{check['type']} {check['path']}"
        groups.setdefault(f"{asked} {addresses}", pair.Group([], asked, addresses)).ports.append(service["port"])
    return list(groups.values())


def draw_timeline() -> str:
    plan, fast = planned("pair", README, "yaml"), planned("pair", README, "yaml", **FAST)
    (vip,) = plan.vips
    holder, backup = vip.order
    allowed, measured = outage(plan, events.HAPROXY_KILLED), row(README, "haproxy killed")
    return timeline.draw(
        timeline.Timeline(
            members=(holder, backup),
            priority=plan.members[backup].router.instances[0]["priority"],
            down_file=plan.members[holder].balancer.down_file,
            skew_ms=allowed - SWITCH_MS,
            switch_ms=SWITCH_MS,
            plan_ms=allowed,
            measured_ms=_milliseconds(measured["outage"]),
            worst_ms=_milliseconds(measured["worst"]),
            failures=[
                timeline.Failure("haproxy dies", allowed),
                timeline.Failure("host lost, fast setting", outage(fast, events.HOST_CUT)),
                timeline.Failure("host lost", outage(plan, events.HOST_CUT)),
            ],
        )
    )


def _milliseconds(cell: str) -> float:
    return float(cell.removesuffix(" ms"))


def draw_redirect() -> str:
    plan = planned("ipi", ROLES / "ipi" / "README.md", "ini")
    vip, holder = _first_holder(plan)
    ((port, to_port),) = holder.balancer.redirect.ports.items()
    return redirect.draw(
        redirect.Redirect(
            vip=vip.address,
            port=port,
            to_port=to_port,
            masters=vip.order,
            address=holder.router.instances[0]["source"],
            outage_ms=outage(plan, events.HAPROXY_KILLED),
        )
    )


def draw_direct() -> str:
    services = yaml.safe_load(blocks(DOCS / "direct.md", "yaml")[0])["pair_services"]
    plan = planned("pair", README, "yaml", services=services)
    (vip,), (service,) = plan.vips, services
    return direct.draw(direct.Direct(vip.address, service["port"], vip.order, service["servers"]))


def draw_node() -> str:
    vip, holder = _first_holder(planned("ipi", DOCS / "cluster.md", "ini"))
    ((port, to_port),) = holder.balancer.redirect.ports.items()
    names = holder.resolver["layout"]
    stem, _dash, number = vip.order[-1].rpartition("-")
    joins, api = f"{stem}-{int(number) + 1}", f"api.{names['name']}.{names['domain']}"
    return node.draw(node.Node(vip.address, port, to_port, vip.order, joins, api))


def _first_holder(plan: Plan) -> Tuple[Vip, MemberPlan]:
    """Return the first VIP and the plan of who holds it first."""
    return plan.vips[0], plan.members[plan.vips[0].order[0]]


def draw_terminal() -> str:
    return terminal.draw(f"ansible-playbook -i inventory.yml {FORECAST}", forecast_of_readme())


def forecast_of_readme() -> List[str]:
    """Return what the forecast prints of the README's inventory."""
    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder, "inventory.yml")
        inventory.write_text(blocks(README, "yaml")[0])
        code, said = play(Path(folder), "", FORECAST, "-i", str(inventory))
    assert code == 0, said
    return printed(said)


DRAWN: Mapping[str, Callable[[], str]] = {
    "choice": choice.draw,
    "direct": draw_direct,
    "forecast": draw_terminal,
    "node": draw_node,
    "pair": draw_pair,
    "redirect": draw_redirect,
    "timeline": draw_timeline,
}


def path(name: str) -> Path:
    return PICTURES / f"{name}.svg"


def write() -> None:
    for name, draw in DRAWN.items():
        path(name).write_text(draw())
