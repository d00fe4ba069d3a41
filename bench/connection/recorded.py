"""Members that answer each module at once, as its documentation says, of a host where everything is in place already.

So a run costs what the controller does: variables, plans, templates, and the payloads of modules.
"""

from __future__ import annotations

import functools
import importlib
import json
import re

import yaml
from ansible.plugins.connection import ConnectionBase

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
MODULES = "ansible_collections.onprem.lb.plugins.modules"
NAMED = re.compile(rf"{re.escape(MODULES)}\.(\w+)".encode())  # in what Ansible sends
EMPTY = {"list": [], "dict": {}, "str": "", "bool": False, "int": 0, "float": 0}
UNITS = [
    f"{name}.{kind}"
    for name in ("haproxy", "keepalived", "onprem-lb-proxy", "onprem-lb-vrrp", "onprem-lb-down-file")
    for kind in ("service", "path")
]


@functools.lru_cache(maxsize=None)
def returned(module):
    """Return what a module of the collection returns, as its documentation describes it."""
    return yaml.safe_load(importlib.import_module(f"{MODULES}.{module}").RETURN)


def empty(described):
    """Return nothing of each kind of fact that there always is, as the documentation describes them."""
    return {name: EMPTY[one["type"]] for name, one in described.items() if one.get("returned", "success") == "success"}


class Connection(ConnectionBase):
    """A host without a network."""

    transport = "recorded"
    has_pipelining = True

    def _connect(self):
        return self

    def exec_command(self, cmd, in_data=None, sudoable=True):
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        module = NAMED.search(in_data or b"")
        return 0, json.dumps(self._answer(module[1].decode() if module else "")).encode() if in_data else b"", b""

    def _answer(self, module):
        own = {"host_info": self._host, "member_info": self._member}.get(module, dict)
        return {"changed": False, **(empty(returned(module)) if module else {}), **own()}

    def _member(self):
        return {
            "servers": {"total": 0, "up": 0, "others": []},
            "held": [{"address": vip, "seconds": 60} for vip in self.get_option("holds")],
            "active_units": UNITS,
        }

    def _host(self):
        return {
            "os_family": "Debian",
            "addresses": [{**LINK, "address": self.get_option("address")}],
            "listeners": [{"address": "0.0.0.0", "port": 443, "program": self.get_option("balancer"), "pid": 1}],
            "package_lists_fresh": True,
            "active_units": UNITS,
            "enabled_units": UNITS,
            "takeover": {
                name: empty(returned("host_info")["takeover"]["contains"]) for name in ("haproxy", "keepalived")
            },
        }

    def put_file(self, in_path, out_path):
        raise NotImplementedError

    def fetch_file(self, in_path, out_path):
        raise NotImplementedError

    def close(self):
        pass
