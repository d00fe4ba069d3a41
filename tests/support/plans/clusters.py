"""Nodes and settings for tests of the layout `ipi`: a cluster of three masters and a worker."""

from __future__ import annotations

import copy

# The nodes of a real cluster have longer names, such as vmware-nwjr2-master-0.
ADDRESSES = {"master-0": 34, "master-2": 90, "master-1": 99, "worker-0": 51}
SETTINGS = {
    "masters": ["master-0", "master-2", "master-1"],
    "cluster_name": "vmware",
    "api_vips": ["10.0.0.200"],
    "ingress_vips": ["10.0.0.201"],
}


def node(name, **settings):
    number = ADDRESSES[name]
    mac = f"02:00:00:00:00:{number:02x}"
    own = {"interface": "ens192", "mac": mac}
    return {
        "name": name,
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
