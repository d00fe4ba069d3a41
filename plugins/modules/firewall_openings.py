#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_openings
short_description: Open an active firewall for a load balancer's ports and its peers' VRRP
version_added: 0.1.0
author:
  - The onprem.lb authors (@onprem)
description:
  - Tells the firewall that is active on the host, firewalld, ufw or nftables, to let in TCP connections to
    some ports from anywhere, and VRRP (IP protocol 112) from the named peers only.
  - One call describes all openings. Openings that an earlier call made and that are not named any more are
    closed.
  - Nothing is installed and nothing is activated. Without an active firewall the module does nothing and
    says so.
options:
  ports:
    description: The TCP ports to open, as V(8443) or V(8443/tcp).
    type: list
    elements: str
    default: []
  vrrp_peers:
    description:
      - The addresses, IPv4 or IPv6, that may send VRRP to this host. This is a peer's own address with
        multicast too.
      - VRRP for IPv6 is sent from link-local addresses, unless it is unicast from another address.
    type: list
    elements: str
    default: []
  interface:
    description:
      - The interface whose zone firewalld opens. Without it, or while it is in no zone, the default zone.
    type: str
  manager:
    description:
      - Which firewall to speak to. V(auto) takes the first active one of V(firewalld), V(ufw) and
        V(nftables).
      - A manager asked for by name must be active. V(none) leaves every firewall alone.
    type: str
    choices: [auto, firewalld, ufw, nftables, none]
    default: auto
  state:
    description:
      - V(absent) closes every opening that this module made, whatever O(ports) and O(vrrp_peers) say.
    type: str
    choices: [present, absent]
    default: present
notes:
  - firewalld gets rich rules with the priority 1120, by which the module knows its own, permanently and at
    run time, without a reload. A deny rule of the administrator's own still comes first.
  - ufw gets rules with the comment V(onprem.lb). An equal rule of the administrator's own is left as it is
    and counts as the opening. Before ufw 0.36.2, which knows no VRRP, a marked block in
    C(/etc/ufw/before.rules) and C(before6.rules) opens it.
  - nftables gets rules with the comment V(onprem.lb) at the top of each input chain that would refuse, that
    is before the administrator's own rules in the same chain. Bans in another chain, such as fail2ban's,
    keep their effect.
  - A drop-in of C(nftables.service) puts the rules back when the service starts or reloads. After C(nft -f)
    by hand they are gone until then; use C(systemctl reload nftables).
  - O(state=absent) speaks to the active firewall only. Settings left behind in one that is switched off
    have no effect.
attributes:
  check_mode:
    description: Can run in check_mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description:
      - Will return details on what has changed (or possibly needs changing in check_mode), when in diff
        mode.
    support: full
"""

EXAMPLES = r"""
- name: Open the balancer's ports, and VRRP from the other member
  onprem.lb.firewall_openings:
    ports: [80, 443, 8443]
    vrrp_peers: [10.0.0.12]
    interface: eth0

- name: Close all of them again
  onprem.lb.firewall_openings:
    state: absent
"""

RETURN = r"""
manager:
  description: The firewall that was spoken to, V(none) when there is none.
  returned: success
  type: str
  sample: firewalld
openings:
  description:
    - What was asked for and is let in by the firewall's rules now. Empty when there is nothing that refuses it.
  returned: success
  type: list
  elements: str
  sample: [tcp 8443 from anywhere, vrrp from 10.0.0.12]
msg:
  description: Why there was nothing to do, when there was no firewall to open.
  returned: when there is no firewall to open
  type: str
  sample: No firewall is active; nothing to open.
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.core import plan
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.model import (
    FirewallError,
    Plan,
    apply,
    wanted_openings,
)
from ansible_collections.onprem.lb.plugins.module_utils._host.firewall.system import SystemHost


def result(todo: Plan) -> Dict[str, Any]:
    facts: Dict[str, Any] = {
        "changed": bool(todo.actions),
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


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "str", "default": []},
            "vrrp_peers": {"type": "list", "elements": "str", "default": []},
            "interface": {"type": "str"},
            "manager": {
                "type": "str",
                "choices": ["auto", "firewalld", "ufw", "nftables", "none"],
                "default": "auto",
            },
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    host = SystemHost(module)
    params = module.params
    try:
        wanted = wanted_openings(params["ports"], params["vrrp_peers"])
        if params["state"] == "absent":
            wanted = []
        todo = plan(host, params["manager"], wanted, params["interface"])
        if not module.check_mode:
            apply(todo.actions, host)
    except FirewallError as error:
        module.fail_json(msg=str(error))
    for warning in todo.warnings:
        module.warn(warning)
    module.exit_json(**result(todo))


if __name__ == "__main__":
    main()
