#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_openings
short_description: Open an active firewall for a load balancer's ports and its peers' VRRP
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Makes the active firewall of the host, firewalld, ufw or nftables, accept TCP connections to some ports from
    anywhere or from some networks, and VRRP (IP protocol 112) from the named peers only.
  - One call describes all openings. Openings of an earlier call that are not named any more are closed, except with
    O(keep).
  - Nothing is installed and nothing is activated. Without an active firewall the module does nothing and says so.
options:
  ports:
    description: The ports to open, as V(8443), V(8443/tcp) or V(514/udp).
    type: list
    elements: str
    default: []
  restricted_ports:
    description:
      - The ports to open for some networks alone. A port that is in O(ports), too, is open for everybody.
    type: list
    elements: dict
    default: []
    suboptions:
      port:
        description: The port, as V(8443).
        type: str
        required: true
      networks:
        description: The networks, IPv4 or IPv6, as V(192.0.2.0/24); an address is one, too.
        type: list
        elements: str
        required: true
      protocol:
        description: The protocol of the port.
        type: str
        choices: [tcp, udp]
        default: tcp
  vrrp_peers:
    description:
      - The addresses, IPv4 or IPv6, that may send VRRP to this host. This is a peer's own address, even with multicast.
      - VRRP for IPv6 is sent from link-local addresses, unless it is unicast from another address.
    type: list
    elements: str
    default: []
  interfaces:
    description: The interfaces whose zones firewalld opens. Without any, or for one in no zone, it is the default zone.
    type: list
    elements: str
    default: []
  keep:
    description: Whether the openings of an earlier call stay open that this one does not name.
    type: bool
    default: false
    version_added: 1.1.0
  manager:
    description:
      - The firewall to open. V(auto) takes the first active one of V(firewalld), V(ufw) and V(nftables).
      - A manager that is named must be active. V(none) changes no firewall.
    type: str
    choices: [auto, firewalld, ufw, nftables, none]
    default: auto
  state:
    description: V(absent) closes every opening that this module made, whatever the other options say.
    type: str
    choices: [present, absent]
    default: present
notes:
  - firewalld gets rich rules with the priority 1120, which marks them as ours, permanently and at run time, without a
    reload. A deny rule of the administrator's own still comes first.
  - ufw gets rules with the comment V(onprem.lb). An equal rule of the administrator's own stays unchanged and counts as
    the opening. Before 0.36.2 ufw does not support VRRP, so a marked block in C(/etc/ufw/before.rules) and
    C(before6.rules) opens it.
  - nftables gets rules with the comment V(onprem.lb) at the top of each input chain that would refuse, before the
    administrator's own rules in the same chain. Bans in another chain, such as fail2ban's, keep their effect.
  - A drop-in of C(nftables.service) restores the rules when the service starts or reloads. After a manual C(nft -f)
    they are gone until then; use C(systemctl reload nftables).
  - O(state=absent) changes the active firewall only. Settings that remain in an inactive one have no effect.
attributes:
  check_mode:
    description: Can run in check_mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in check_mode), when in diff mode.
    support: full
"""

EXAMPLES = r"""
- name: Open the balancer's ports, and VRRP from the other member
  onprem.lb.firewall_openings:
    ports: [80, 443, 8443]
    vrrp_peers: [10.0.0.12]
    interfaces: [eth0]

- name: Open the port of a machine config server to the cluster's machines alone
  onprem.lb.firewall_openings:
    ports: [6443, 80, 443]
    restricted_ports:
      - {port: 22623, networks: [10.0.0.0/16]}

- name: Let BFD in from a router
  onprem.lb.firewall_openings:
    restricted_ports:
      - {port: 3784, protocol: udp, networks: [10.0.0.1]}

- name: Close them again
  onprem.lb.firewall_openings:
    state: absent
"""

RETURN = r"""
manager:
  description: The firewall that was opened, V(none) if there is none.
  returned: success
  type: str
  sample: firewalld
openings:
  description: The requested openings that the firewall's rules accept now. Empty if nothing would refuse them.
  returned: success
  type: list
  elements: str
  sample: [tcp 8443 from anywhere, vrrp from 10.0.0.12]
in_force:
  description: Whether all that was asked for was in force already.
  returned: success
  type: bool
msg:
  description: Why there was nothing to do.
  returned: when there is no firewall to open
  type: str
  sample: No firewall is active; nothing to open.
"""

from typing import Any, Dict

from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.core import plan
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.model import (
    ChangeSet,
    FirewallError,
    apply,
    wanted_openings,
)
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.system import Host
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words


def result(todo: ChangeSet) -> Dict[str, Any]:
    facts: Dict[str, Any] = {
        "changed": bool(todo.actions),
        "in_force": not todo.actions,
        "manager": todo.manager,
        "openings": todo.openings,
        "diff": {
            "before_header": todo.manager,
            "after_header": todo.manager,
            "before": "".join(line + "\n" for line in todo.before),
            "after": "".join(line + "\n" for line in todo.after),
        },
    }
    if todo.message:
        facts["msg"] = todo.message
    return facts


@ending_in_words
def main() -> None:
    module = Module(
        argument_spec={
            "ports": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "restricted_ports": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "port": {"type": "str", "required": True, "no_log": False},
                    "networks": {"type": "list", "elements": "str", "required": True, "no_log": False},
                    "protocol": {"type": "str", "choices": ["tcp", "udp"], "default": "tcp"},
                },
            },
            "vrrp_peers": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "interfaces": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "keep": {"type": "bool", "default": False},
            "manager": {"type": "str", "choices": ["auto", "firewalld", "ufw", "nftables", "none"], "default": "auto"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    host = Host(module)
    params = module.params
    try:
        wanted = wanted_openings(params["ports"], params["vrrp_peers"], params["restricted_ports"])
        if params["state"] == "absent":
            wanted = []
        keep = params["keep"] and params["state"] == "present"
        todo = plan(host, params["manager"], wanted, params["interfaces"], keep)
        if not module.check_mode:
            apply(todo.actions, host)
    except FirewallError as error:
        module.fail_json(msg=str(error))
    for warning in todo.warnings:
        module.warn(warning)
    module.exit_json(**result(todo))


if __name__ == "__main__":
    main()
