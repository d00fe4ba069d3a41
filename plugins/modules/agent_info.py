#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_info
short_description: Read the status of the embedded agent, and whether it could run here
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Returns the status of the router and of the balancer, and the reasons why they cannot run here.
  - Changes nothing.
options:
  vrrp:
    description: Whether a router is to run.
    type: bool
    default: false
  proxy:
    description: Whether a balancer is to run.
    type: bool
    default: false
  python:
    description: The Python that is to run the agent. By default the one that runs this module, or that
      its virtual environment was made of.
    type: path
  replace:
    description: Programs that may be stopped for the agent.
    type: list
    elements: str
    choices: [haproxy, keepalived]
    default: []
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
"""

EXAMPLES = r"""
- name: Read the status
  onprem.lb.agent_info:
  register: agent

- name: Print the states of the instances
  ansible.builtin.debug:
    msg: "{{ agent.vrrp.instances | items2dict(key_name='name', value_name='state') }}"
  when: agent.vrrp
"""

RETURN = r"""
vrrp:
  description: The router's report, or nothing if none answers. See docs/agent.md.
  type: dict
  returned: success
proxy:
  description: The balancer's report, or nothing if none answers. See docs/proxy.md.
  type: dict
  returned: success
units:
  description: >-
    For each unit whether it is C(active), C(enabled) and C(masked), its C(pid), and the C(archive) that it runs.
  type: dict
  returned: success
listeners:
  description: The listening TCP sockets.
  type: list
  elements: dict
  returned: success
  sample: [{"address": "0.0.0.0", "port": 22, "program": "sshd", "pid": 321}]
addresses:
  description: The host's addresses, as RV(onprem.lb.host_info#module:addresses).
  type: list
  elements: dict
  returned: success
problems:
  description: A sentence for each reason why the agent cannot run here.
  type: list
  elements: str
  returned: success
"""

from ansible_collections.onprem.lb.plugins.module_utils._host import interpreter
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import deployment
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Host
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader

ARGUMENTS = {
    "vrrp": {"type": "bool", "default": False},
    "proxy": {"type": "bool", "default": False},
    "python": {"type": "path"},
    "replace": {"type": "list", "elements": "str", "choices": ["haproxy", "keepalived"], "default": []},
}


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, supports_check_mode=True)
    reader = Reader.of(module)
    host = Host(reader.run, reader.find)
    params = module.params
    wanted = [name for name in ("vrrp", "proxy") if params[name]]
    problems = deployment.problems(host, wanted, params["python"] or interpreter.lasting(), params["replace"])
    units = host.units() if host.has_systemd() else {}
    module.exit_json(
        **{daemon.name: host.report(daemon.status_socket) for daemon in deployment.DAEMONS},
        units={name: unit._asdict() for name, unit in units.items()},
        listeners=facts.listeners(),
        addresses=reader.addresses() or [],
        problems=problems,
    )


if __name__ == "__main__":
    main()
