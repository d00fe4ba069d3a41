"""Members that answer each module at once, with the facts of a host where everything is in place already.

So a run costs what the controller does: variables, plans, templates, and the payloads of modules.
"""

from __future__ import annotations

import json

import yaml
from ansible.plugins.connection import ConnectionBase
from ansible_collections.onprem.lb.plugins.modules import host_info, member_info

DOCUMENTATION = """
name: recorded
short_description: Answers in place of a host
description: Answers each module with the same facts.
author: The onprem.lb authors
options:
  address:
    description: The member's own address.
    vars: [{name: ansible_host}]
  balancer:
    description: The program that listens on the service's port.
    vars: [{name: recorded_balancer}]
  holds:
    description: The VIPs that it holds.
    type: list
    elements: str
    default: []
    vars: [{name: recorded_holds}]
"""

LINK = {"interface": "eth0", "prefix": 16, "mac": ""}
# What any module of a run returns, but for `host_info` and `member_info`, of which the documentation says it.
OF_OTHER_MODULES = {"stale": [], "heard": [], "faults": []}
EMPTY = {"list": [], "dict": {}, "str": "", "bool": False, "int": 0, "float": 0}
FACTS = yaml.safe_load(host_info.RETURN)
OF_MEMBER = yaml.safe_load(member_info.RETURN)
UNITS = [
    f"{name}.{kind}"
    for name in ("haproxy", "keepalived", "onprem-lb-proxy", "onprem-lb-vrrp", "onprem-lb-down-file")
    for kind in ("service", "path")
]


def empty(described):
    """Return nothing of each kind of fact, as the documentation describes them."""
    return {name: EMPTY[one["type"]] for name, one in described.items()}


class Connection(ConnectionBase):
    """A host without a network."""

    transport = "recorded"
    has_pipelining = True

    def _connect(self):
        return self

    def exec_command(self, cmd, in_data=None, sudoable=True):
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return 0, json.dumps(self._facts()).encode() if in_data else b"", b""

    def _facts(self):
        return {
            **OF_OTHER_MODULES,
            **empty(OF_MEMBER),
            **empty(FACTS),
            "servers": {"total": 0, "up": 0, "others": []},
            "held": [{"address": vip, "seconds": 60} for vip in self.get_option("holds")],
            "changed": False,
            "os_family": "Debian",
            "addresses": [{**LINK, "address": self.get_option("address")}],
            "listeners": [{"address": "0.0.0.0", "port": 443, "program": self.get_option("balancer"), "pid": 1}],
            "package_lists_fresh": True,
            "active_units": UNITS,
            "enabled_units": UNITS,
            "takeover": {name: empty(FACTS["takeover"]["contains"]) for name in ("haproxy", "keepalived")},
        }

    def put_file(self, in_path, out_path):
        raise NotImplementedError

    def fetch_file(self, in_path, out_path):
        raise NotImplementedError

    def close(self):
        pass
