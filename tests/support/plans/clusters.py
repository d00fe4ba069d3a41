"""Nodes and settings for tests of the layout `ipi`: a cluster of three masters and a worker."""

from __future__ import annotations

import copy

from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

# The nodes of a real cluster have longer names, such as vmware-nwjr2-master-0.
ADDRESSES = {"master-0": 34, "master-2": 90, "master-1": 99, "worker-0": 51}
BOOTSTRAP = {"bootstrap-0": 20}
SETTINGS = {
    "masters": ["master-0", "master-2", "master-1"],
    "cluster_name": "vmware",
    "api_vips": ["10.0.0.200"],
    "ingress_vips": ["10.0.0.201"],
}


def node(name, **settings):
    number = {**ADDRESSES, **BOOTSTRAP}[name]
    mac = f"02:00:00:00:00:{number:02x}"
    own = {"interface": "ens192", "mac": mac}
    return {
        "name": name,
        "address": f"10.0.0.{number}",
        "settings": {**copy.deepcopy(SETTINGS), **settings},
        "host": {
            "addresses": [
                {**own, "address": f"10.0.0.{number}", "prefix": 24},
                {**own, "address": f"2001:db8::{number}", "prefix": 64},
            ],
            "listeners": [],
            "answering": {},
            "instances": [],
            "problems": [],
        },
    }


def cluster(*names, **settings):
    """Return nodes by name; by default all of them, with the masters not in the order of their names."""
    return [node(name, **settings) for name in names or ADDRESSES]


def living(were_masters, holders, preset="default", **settings):
    """Return nodes that run as a cluster with these masters, and have the settings of a run that changes it.

    :param were_masters: of the cluster that runs
    :param holders: of each VIP that is held
    """
    running = planner.draft(ipi.LAYOUT, cluster(masters=were_masters, preset=preset)).members
    nodes = cluster(preset=preset, **settings)
    for one in nodes:
        instances = running[one["name"]].router.instances
        units = [*engines.UNITS[engines.NATIVE]]
        one["host"].update(
            instances=list(instances),
            own_units=units,
            active_units=units,
            keepalived_version="2.2.7",
        )
        link = one["host"]["addresses"][0]
        held = [vip for vip, holder in holders.items() if holder == one["name"]]
        one["host"]["addresses"] += [{**link, "address": vip, "prefix": 32} for vip in held]
    return nodes
