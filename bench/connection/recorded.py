"""Members that answer each module at once, with the facts of a host where everything is in place already.

So a run costs what the controller does: variables, plans, templates, and the payloads of modules.
"""

from __future__ import annotations

import json

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
"""

LINK = {"interface": "eth0", "prefix": 16, "mac": ""}
EMPTY_LISTS = (
    "missing_packages",
    "missing_programs",
    "own_units",
    "existing_units",
    "stale",
    "instances",
    "heard",
    "problems",
    "faults",
    "recorded_packages",
    "own_packages",
)
OF_OTHERS = {"refusals": [], "problems": [], "keep": [], "set_aside": [], "stop": False, "put_back": []}
UNITS = [
    f"{name}.{kind}"
    for name in ("haproxy", "keepalived", "onprem-lb-proxy", "onprem-lb-vrrp", "onprem-lb-down-file")
    for kind in ("service", "path")
]


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
            **{name: [] for name in EMPTY_LISTS},
            "changed": False,
            "os_family": "Debian",
            "addresses": [{**LINK, "address": self.get_option("address")}],
            "listeners": [{"address": "0.0.0.0", "port": 443, "program": self.get_option("balancer"), "pid": 1}],
            "answering": {},
            "unobtainable": "",
            "unremovable": {},
            "obstacles": {},
            "package_lists_fresh": True,
            "active_units": UNITS,
            "enabled_units": UNITS,
            "members": {},
            "takeover": {"haproxy": OF_OTHERS, "keepalived": OF_OTHERS},
            "selinux": False,
        }

    def put_file(self, in_path, out_path):
        raise NotImplementedError

    def fetch_file(self, in_path, out_path):
        raise NotImplementedError

    def close(self):
        pass
