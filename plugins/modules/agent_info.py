#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_info
short_description: Read what the embedded agent says of itself, and whether it could run here
version_added: 0.1.0
author:
  - The onprem.lb authors (@onprem)
description:
  - Returns the status of the router and of the balancer, and what keeps them from running here as wanted.
  - Changes nothing.
options:
  vrrp:
    description: Whether there is to be a router.
    type: bool
    default: false
  proxy:
    description: Whether there is to be a balancer.
    type: bool
    default: false
  python:
    description: The Python that is to run them. The one that runs this module by default.
    type: path
  replace:
    description: Programs that may be stopped for them.
    type: list
    elements: str
    choices: [haproxy, keepalived]
    default: []
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
"""

EXAMPLES = r"""
- name: See who is Active
  onprem.lb.agent_info:
  register: agent

- name: Say it
  ansible.builtin.debug:
    msg: "{{ agent.vrrp.instances | items2dict(key_name='name', value_name='state') }}"
  when: agent.vrrp
"""

RETURN = r"""
vrrp:
  description: What the router says of itself, or nothing where none answers. See docs/agent.md.
  type: dict
  returned: success
proxy:
  description: What the balancer says of itself, or nothing where none answers. See docs/proxy.md.
  type: dict
  returned: success
units:
  description: For each unit whether it is C(active) and C(enabled), its C(pid), and the C(archive) that it runs.
  type: dict
  returned: success
listeners:
  description: What listens on TCP.
  type: list
  elements: dict
  returned: success
  sample: [{"address": "0.0.0.0", "port": 22, "program": "sshd", "pid": 321}]
problems:
  description: What keeps the agent from running here as wanted, in sentences.
  type: list
  elements: str
  returned: success
"""

import sys

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._host import facts
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import deployment
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Host
from ansible_collections.onprem.lb.plugins.module_utils._host.reader import Reader

ARGUMENTS = {
    "vrrp": {"type": "bool", "default": False},
    "proxy": {"type": "bool", "default": False},
    "python": {"type": "path"},
    "replace": {"type": "list", "elements": "str", "choices": ["haproxy", "keepalived"], "default": []},
}


def main():
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    reader = Reader.of(module)
    host = Host(reader.run, reader.find)
    asked = module.params
    wanted = [name for name in ("vrrp", "proxy") if asked[name]]
    problems = deployment.problems(host, wanted, asked["python"] or sys.executable, asked["replace"])
    units = host.units() if host.has_systemd() else {}
    module.exit_json(
        **{daemon.name: host.report(daemon.status_socket) for daemon in deployment.DAEMONS},
        units={name: {**unit._asdict()} for name, unit in units.items()},
        listeners=facts.listeners(),
        problems=problems,
    )


if __name__ == "__main__":
    main()
