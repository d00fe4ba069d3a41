#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent
short_description: Run the embedded agent, a VRRP router and a TCP balancer that need no packages
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Installs the agent, which the controller packs from the sources of this collection, with its configurations and
    systemd units. Nothing is downloaded.
  - The version to be installed checks both configurations before anything is changed.
  - A new configuration is loaded without dropping a connection or a VIP. A new version of the balancer takes over from
    the running one in the same way. A router ends with its addresses in place, and its new version adopts them.
  - After an interrupted run the next one takes the remaining steps.
options:
  state:
    description: Whether the agent is installed. V(absent) releases the VIPs and removes all that this module made.
    type: str
    choices: [present, absent]
    default: present
  vrrp:
    description: The router's configuration, as the filter C(agent_config) returns it. Without it no router runs.
    type: dict
  proxy:
    description: The balancer's configuration. Without it no balancer runs.
    type: dict
  options:
    description: What the balancer's unit does besides running the balancer.
    type: dict
    suboptions:
      down_file:
        description: A file that contains 1 while the balancer is down and 0 while it serves; none when empty.
        type: str
        default: ""
      stop_pause:
        description: Seconds between writing 1 to O(options.down_file) and stopping.
        type: float
        default: 0.2
      start_commands:
        description: Commands that run as root once the balancer serves.
        type: list
        elements: str
        default: []
      stop_commands:
        description: Commands that run as root before the balancer stops, and after it has ended.
        type: list
        elements: str
        default: []
  python:
    description: The Python that runs the agent, 3.8 or later. By default the one that runs this module,
      or that its virtual environment was made of.
    type: path
  replace:
    description: Programs that are stopped and disabled right before the agent replaces them.
    type: list
    elements: str
    choices: [haproxy, keepalived]
    default: []
  keep:
    description: Daemons that stay as they are, whatever is said of them here.
    type: list
    elements: str
    choices: [vrrp, proxy]
    default: []
  secrets:
    description: Texts to mask in diffs and logs.
    type: list
    elements: str
    default: []
  packed:
    description: The agent as one file. The action plugin of this module sets it.
    type: str
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: The agent checks the configurations in check mode, too.
  diff_mode:
    support: full
    description: Shows the difference of each file, with the passwords masked.
  platform:
    support: full
    platforms: linux
    description: systemd starts the agent.
"""

EXAMPLES = r"""
- name: Balance port 443
  onprem.lb.agent:
    proxy:
      services:
        - name: web
          port: 443
          servers: [192.0.2.31, 192.0.2.32]

- name: Remove it
  onprem.lb.agent:
    state: absent
"""

RETURN = r"""
steps:
  description: The steps that were taken, or in check mode would be, in their order.
  type: list
  elements: str
  returned: success
  sample: ["replace /etc/onprem-lb-agent/proxy.json", "reload onprem-lb-proxy.service"]
archive:
  description: The path of the version that runs.
  type: str
  returned: success
"""

import os

from ansible_collections.onprem.lb.plugins.module_utils._host import candidates, interpreter
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import deployment
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Failed, Host
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Options
from ansible_collections.onprem.lb.plugins.module_utils._host.module import PACKED, Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files, programs

OPTIONS = {
    "down_file": {"type": "str", "default": ""},
    "stop_pause": {"type": "float", "default": 0.2},
    "start_commands": {"type": "list", "elements": "str", "default": []},
    "stop_commands": {"type": "list", "elements": "str", "default": []},
}
ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "vrrp": {"type": "dict"},
    "proxy": {"type": "dict"},
    "options": {"type": "dict", "options": OPTIONS, "apply_defaults": True},
    "python": {"type": "path"},
    "replace": {"type": "list", "elements": "str", "choices": ["haproxy", "keepalived"], "default": []},
    "keep": {"type": "list", "elements": "str", "choices": ["vrrp", "proxy"], "default": []},
    "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
    PACKED: {"type": "str"},
}


def request_of(params):
    options = Options(
        params["options"]["down_file"],
        params["options"]["stop_pause"],
        tuple(params["options"]["start_commands"]),
        tuple(params["options"]["stop_commands"]),
    )
    configs = {"vrrp": params["vrrp"], "proxy": params["proxy"]}
    python = params["python"] or interpreter.lasting()
    return deployment.Request(configs, options, python, params["replace"], params["keep"])


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, supports_check_mode=True)
    reader = Reader.of(module)
    agent = deployment.Deployment(Host(reader.run, reader.find), candidates.mover(module))
    if os.geteuid() != 0:
        module.fail_json(msg="Only root may install the agent: use become.")
    try:
        if module.params["state"] == "present":
            done = agent.present(request_of(module.params), programs.taken(module), module.check_mode)
        else:
            done = agent.absent(module.check_mode)
    except (Failed, files.Refused, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(done.steps), steps=done.steps, archive=done.archive, diff=done.diff)


if __name__ == "__main__":
    main()
