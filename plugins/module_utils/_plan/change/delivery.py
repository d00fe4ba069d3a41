# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a member's balancer and VRRP router come to it: as units of systemd, or as static pods of its kubelet. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

from ..._agent.config.schema import Faults, Field, mapping, one_of, read
from ..._shared.engines import AGENT, AUTO, HAPROXY, KEEPALIVED, NATIVE, POD, PODS, UNIT, UNITS, Units
from ..._shared.pods import NAMES
from ..members.engine_choice import Choice, wanted_engines
from ..model import pod_options
from . import order
from .transition import sole_router
from .turns import Turn

SETTINGS = {"delivery": Field(one_of(UNIT, POD), UNIT), "pods": Field(mapping, {})}


class Delivery(NamedTuple):
    """How the members of a layout get what they run.

    :ivar options: of the pods, as `pods.manifests.Options` has them; nothing for units
    """

    kind: str = UNIT
    options: Dict[str, str] = {}

    @property
    def is_pod(self) -> bool:
        return self.kind == POD

    def units(self, engine: str) -> Units:
        """Return what the balancer and the router of an engine are called on a host."""
        return PODS if self.is_pod else UNITS[engine]

    def in_turn(self, order: List[List[str]]) -> List[List[str]]:
        """Return the order of a change: a pod that is started anew is gone for some time, and so one at a time is."""
        return [[name] for wave in order for name in wave] if self.is_pod else order


def of(settings: Mapping[str, Any], prefix: str, faults: Faults) -> Delivery:
    """Return the delivery that a layout's settings name; a pair has units."""
    if settings.get("delivery", UNIT) == UNIT:
        return Delivery()
    given = read(pod_options.OPTIONS, settings["pods"], f"{prefix}_pods", faults)
    return Delivery(POD, {**given, **{name: given[name] or given["agent_image"] for name in pod_options.OTHERS}})


def engines(members: List[Dict[str, Any]], prefix: str, faults: Faults) -> Dict[str, Choice]:
    """Return the engine of each member's pods, whose programs are in images, and append what is wrong with it.

    :param members: as in `planner`
    """
    wanted = wanted_engines(members, prefix, faults)
    chosen = {member["name"]: _engine(wanted[member["name"]], member["host"], prefix) for member in members}
    return {member["name"]: _replacing(_moving(chosen[member["name"]], member, UNIT), member) for member in members}


def _engine(wanted: str, host: Mapping[str, Any], prefix: str) -> Choice:
    """Return the engine that is named, or else that of the pods that are there."""
    if wanted != AUTO:
        return Choice(wanted, f"{prefix}_engine names it")
    if host.get("silent"):
        return Choice(host["pods_engine"], "as is assumed, because it does not answer")
    present = host.get("pods_engine", "")
    reason = "its pods are here already" if present else "whose programs are in the images of its pods"
    return Choice(present or NATIVE, reason)


def _replacing(choice: Choice, member: Mapping[str, Any]) -> Choice:
    """Return a choice that replaces the engine of the pods that are there by another one."""
    present = member["host"].get("pods_engine") or choice.engine
    stays = choice.moves_from or present == choice.engine or member["host"].get("silent")
    return choice if stays else choice._replace(replaces=present)


def with_units(members: Iterable[Dict[str, Any]], choices: Mapping[str, Choice]) -> Dict[str, Choice]:
    """Return the choices of members that get units; those that have pods move.

    :param members: as in `planner`
    """
    return {member["name"]: _moving(choices[member["name"]], member, POD) for member in members}


def _moving(choice: Choice, member: Dict[str, Any], other: str) -> Choice:
    """Return a choice that replaces what another delivery has set up here; the run completes what was interrupted.

    Of units an interrupted run may have no more than the packages.
    """
    host = member["host"]
    found = {*host.get("own_units", []), *host.get("recorded_packages", [])}
    is_there = found & ({*NAMES} if other == POD else {*UNITS[NATIVE], HAPROXY, KEEPALIVED})
    replaces = (host.get("pods_engine") or NATIVE) if other == POD else NATIVE
    return choice._replace(replaces=replaces, moves_from=other) if is_there else choice


def faults(
    settings: Mapping[str, Any], members: List[Dict[str, Any]], delivery: Delivery, choices: Mapping[str, Choice]
) -> Faults:
    """Return what cannot be delivered so, and who cannot move from another delivery.

    :param members: as in `planner`
    """
    names = [member["name"] for member in members]
    found = _beyond(settings, names) if delivery.is_pod else []
    of_member = _to_pods if delivery.is_pod else _to_units
    every = ((each["name"], of_member(each, choices[each["name"]])) for each in members)
    return [*found, *(f"{name}: {fault}" for name, own in every for fault in own)]


def _beyond(settings: Mapping[str, Any], names: List[str]) -> Faults:
    """Return the settings that pods do not have yet."""
    found = []
    if settings["metrics_file"]:
        found.append(
            "ipi_metrics_file is set with ipi_delivery: pod, and the program that writes it is not available as a "
            "pod yet: leave it out."
        )
    if settings["bootstrap"] in names:
        found.append(
            "ipi_bootstrap is a member with ipi_delivery: pod, and its kubelet has the pods of the bootstrap: make it "
            "an address, so that it is a server alone."
        )
    return found


def _to_pods(member: Dict[str, Any], choice: Choice) -> Faults:
    """Return why a member cannot get pods in place of its units."""
    host = member["host"]
    own, active = host.get("own_units", []), host.get("active_units", [])
    if {*UNITS[AGENT]} & {*own, *active}:
        return [
            "the agent runs here in units, and ipi_delivery is pod, which does not replace it: first set ipi_engine to "
            "native with ipi_delivery: unit, and run onprem.lb.ipi."
        ]
    others = [unit for unit in UNITS[NATIVE] if unit in active and unit not in own]
    if others and not choice.moves_from:
        return [
            f"{' and '.join(others)} run here, ipi_delivery is pod, and they are not this collection's: stop and "
            "disable them first."
        ]
    unremovable = host.get("unremovable", {})
    return [unremovable[name] for name in (HAPROXY, KEEPALIVED) if choice.moves_from and name in unremovable]


def _to_units(member: Dict[str, Any], choice: Choice) -> Faults:
    """Return why a member cannot get units in place of its pods."""
    if not choice.moves_from or choice.engine == NATIVE:
        return []
    return [
        f"it has pods, and its units would be the agent's ({choice.reason}), which cannot replace them: set ipi_engine "
        "to native, and see that the packages can be installed."
    ]


def unsafe_moves(given: List[Turn], prefix: str, is_pod: bool) -> Faults:
    """Return why members must not move in this run, or change the engine of their pods.

    Routers of before and after would have to change together, and only units of both engines can.
    """
    moving = [turn for turn in given if turn.moves_from or (is_pod and turn.replaces)]
    if not (moving and order.routers_together(given, sole_router(given))):
        return []
    variable = f"{prefix}_{moving[0].replacement[0]}"
    return [
        f"{', '.join(turn.name for turn in moving)} would change {variable}, and settings that all members share "
        f"change as well: change {variable} in a run of its own."
    ]
