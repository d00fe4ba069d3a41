"""Nodes and settings for the tests of the IPI-like layout: the cluster of the articles, and a worker."""

from __future__ import annotations

import copy

# Their own names are longer: vmware-nwjr2-master-0 and so on.
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
    """The nodes by name; all of them, in the order of the articles' haproxy, when none is named."""
    return [node(name, **settings) for name in names or ADDRESSES]
