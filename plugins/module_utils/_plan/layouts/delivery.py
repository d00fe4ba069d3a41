# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a member's balancer and VRRP router come to it: as units of systemd, or as static pods of its kubelet. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

from ..._agent.config.schema import Faults, Field, anything, boolean, one_of, read, text
from ..._shared.engines import AUTO, NATIVE, POD, PODS, UNIT, UNITS, Units
from .engine_choice import Choice

SETTINGS = {"delivery": Field(one_of(UNIT, POD), UNIT), "pods": Field(anything, {})}
# What a user says of all pods.
OPTIONS = {
    "agent_image": Field(text, "", required=True),
    "haproxy_image": Field(text, ""),
    "keepalived_image": Field(text, ""),
    "follow_image": Field(text, ""),
    "namespace": Field(text, "kube-system"),
    "pull_policy": Field(one_of("Always", "IfNotPresent", "Never"), "IfNotPresent"),
}
IMAGES = ("haproxy_image", "keepalived_image", "follow_image")  # that of the agent by default


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
    given = read(OPTIONS, settings["pods"], f"{prefix}_pods", faults)
    return Delivery(POD, {**given, **{name: given[name] or given["agent_image"] for name in IMAGES}})


def engines(members: Iterable[Dict[str, Any]]) -> Dict[str, Choice]:
    """Return the engine of each member's pods, whose programs are in images.

    :param members: as in `planner`
    """
    return {member["name"]: _engine(member["settings"].get("engine") or AUTO) for member in members}


def _engine(wanted: str) -> Choice:
    reason = "whose programs are in the images of its pods"
    return Choice(NATIVE, reason) if wanted == AUTO else Choice(wanted, "ipi_engine names it")


def faults(settings: Mapping[str, Any], members: List[Dict[str, Any]], delivery: Delivery) -> Faults:
    """Return what cannot be delivered so, and what members run that another delivery has brought.

    :param members: as in `planner`
    """
    names = [member["name"] for member in members]
    found = _beyond(settings, names) if delivery.is_pod else []
    return [*found, *(fault for member in members for fault in _of_member(member, delivery))]


def _beyond(settings: Mapping[str, Any], names: List[str]) -> Faults:
    """Return the settings that pods do not have yet."""
    found = []
    if settings["metrics_file"]:
        found.append("ipi_metrics_file is set with ipi_delivery: pod, and what writes it is no pod yet: leave it out.")
    if settings["bootstrap"] in names:
        found.append(
            "ipi_bootstrap is a member with ipi_delivery: pod, and its kubelet has the pods of the bootstrap: make it "
            "an address, so that it is a server alone."
        )
    if boolean(settings["follow"])[0]:
        found.append("ipi_follow is set with ipi_delivery: pod, which does not deliver it yet: leave it out.")
    if boolean(settings["dns"])[0]:
        found.append(
            "ipi_dns is set with ipi_delivery: pod, and the resolver is no pod: leave it out, and set it up with the "
            "role onprem.lb.resolver."
        )
    if settings["engine"] == "agent":
        found.append("ipi_engine is agent with ipi_delivery: pod, which does not deliver it yet: leave it out.")
    return found


def _of_member(member: Dict[str, Any], delivery: Delivery) -> Faults:
    """Return what another delivery has set up on a member."""
    host = member["host"]
    own = [*host.get("own_units", [])]
    if delivery.is_pod:
        there = [unit for units in UNITS.values() for unit in units if unit in [*own, *host.get("active_units", [])]]
        found = f"{' and '.join(there)} run as units here, and ipi_delivery is pod"
    else:
        there = [name for name in PODS if name in own]
        found = f"{' and '.join(there)} are static pods here, and ipi_delivery is unit"
    mend = "run onprem.lb.remove with the settings of before, and then onprem.lb.ipi"
    return [f"{member['name']}: {found}. A run does not move them yet: {mend}."] if there else []
