# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is decided once for a whole IPI-like cluster: its settings, its preset, its VIPs and who has them where."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import (
    Faults,
    Field,
    anything,
    boolean,
    integer,
    list_of,
    number,
    one_of,
    port,
    text,
    word,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import members as _members
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.ipi_presets import FORMER_NAMES, PRESETS, Preset
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.ipi_vips import Wanted, read_vips
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.members import Member, Vip
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.subnets import Placement
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines, vrid

SETTINGS = {
    "cluster_name": Field(anything, ""),
    "other_clusters": Field(list_of(text), []),
    "preset": Field(one_of(*PRESETS, *FORMER_NAMES), "default"),
    "api_vips": Field(anything, []),
    "ingress_vips": Field(anything, []),
    "ingress_members": Field(list_of(word), []),
    "interface": Field(text, ""),
    "engine": Field(text, engines.AUTO),  # each member's is read by itself
    "auth_pass": Field(text, "", secret=True),
    "vrrp_version": Field(integer(2, 3, "a VRRP version"), 2),
    "advert_interval": Field(number(0.01, 255, " seconds"), 1),
    "multicast": Field(boolean),
    "api_port": Field(port, 6443),
    "lb_port": Field(port),
    "ready_port": Field(port),
    "monitor_port": Field(port),
    "stats_port": Field(port),
    "router_port": Field(port, 1936),
    "server_check": Field(anything, {}),
    "bootstrap": Field(text, ""),
    "bootstrap_complete": Field(boolean, False),
    "machine_networks": Field(list_of(text), []),
    "down_file": Field(text, "/run/haproxy.down"),
}


class Cluster(NamedTuple):
    """All that is decided once for the whole cluster."""

    settings: Dict[str, Any]
    preset: Preset
    api: Wanted
    ingress: Wanted
    seats: Dict[str, Dict[str, Placement]]

    @property
    def vips(self) -> List[Vip]:
        return [*self.api.vips, *self.ingress.vips]


def read_cluster(members: List[Member], settings: Dict[str, Any], masters: List[str], faults: Faults) -> Cluster:
    """Return the sketch; what is wrong with the VIPs or with the cluster's name goes into the faults."""
    names = [member["name"] for member in members]
    cluster = settings["cluster_name"]
    vrids = vrid.choose(cluster, "openshift", [], clusters=settings["other_clusters"])
    faults += vrids.faults
    strangers = [name for name in settings["ingress_members"] if name not in names]
    faults += [f"ipi_ingress_members names {name}, which is no node of this cluster." for name in strangers]
    workers = [name for name in names if name not in masters]
    around = _members.existing(members)
    api = Wanted("api", str(cluster), masters)
    ingress = Wanted("ingress", str(cluster), settings["ingress_members"] or [*workers, *masters])
    faults += read_vips(api, settings["api_vips"], vrids.vrids.get("api"), around, [])
    faults += read_vips(ingress, settings["ingress_vips"], vrids.vrids.get("ingress"), around, api.vips)
    seats = _members.placements(members, [*api.vips, *ingress.vips], "ipi", faults)
    return Cluster(settings, _preset(settings, faults), api, ingress, seats)


def _preset(settings: Dict[str, Any], faults: Faults) -> Preset:
    """The preset, and what the user says otherwise."""
    preset = PRESETS[settings["preset"]]
    ports = {name: settings[f"{name}_port"] or usual for name, usual in preset.ports.items()}
    own = settings["server_check"]
    if not isinstance(own, dict):
        faults.append(f"ipi_server_check is {own!r}: a mapping with interval, fall or rise is wanted.")
        own = {}
    multicast = preset.multicast if settings["multicast"] is None else settings["multicast"]
    return preset._replace(ports=ports, multicast=multicast, server_check={**preset.server_check, **own})
