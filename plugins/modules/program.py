#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: program
short_description: Write one of this collection's programs as one file
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - The controller packs the program from the sources of this collection. Nothing is downloaded or started.
options:
  name:
    description:
      - Which program.
      - V(agent) is the embedded agent, which C(python3) runs. P(onprem.lb.agent#module) installs it as a service. This
        is for its other commands, such as C(metrics).
      - V(keepalived_hook) does what keepalived leaves undone.
      - C(hook ended CONFIG) is for systemd, with the path of keepalived's configuration, after keepalived has ended in
        any way. If keepalived was killed while it held VIPs, the program removes them from their interfaces and
        advertises priority 0, so that another member takes them over at once. Otherwise it does nothing.
      - C(hook yielded CONFIG INSTANCE) is for keepalived, when an instance with unicast peers has become Backup. The
        last Advertisement of this member, which tells the winner to announce its VIPs again, may have been lost in the
        kernel, which may have asked for the winner's MAC in vain. The program asks which peer holds the VIP, and sends
        it another one.
      - C(hook answers CONFIG QUESTION...) is for a service. It asks all the time what a member must answer to hold a
        VIP, such as its balancer, and writes 0 or 1 into a track file for each question. While one is not answered, the
        VIPs that depend on it and that this member holds are offered to the others.
    type: str
    choices: [agent, keepalived_hook]
    default: agent
  path:
    description: The path of the program. The folder is created.
    type: path
    required: true
  packed:
    description: The program. The action plugin of this module sets it.
    type: str
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: Says whether the file differs.
  diff_mode:
    support: none
    description: The file is an archive.
  platform:
    support: full
    platforms: posix
    description: The file is renamed within its folder.
"""

EXAMPLES = r"""
- name: Write the agent
  onprem.lb.program:
    path: /usr/local/lib/mine/agent.pyz

- name: Write the hook of keepalived
  onprem.lb.program:
    name: keepalived_hook
    path: /usr/local/lib/mine/hook
"""

RETURN = r"""
paths:
  description: The path of the program.
  type: list
  elements: str
  returned: success
python:
  description: The Python that will run the program. It is the one that runs this module, or that its virtual
    environment was made of.
  type: str
  returned: success
checksum:
  description: The SHA-256 of the program. A unit that names it is started anew for each version.
  type: str
  returned: success
"""

from ansible_collections.onprem.lb.plugins.module_utils._host import interpreter
from ansible_collections.onprem.lb.plugins.module_utils._host.module import PACKED, Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.write import programs

ARGUMENTS = {
    "name": {"type": "str", "choices": ["agent", "keepalived_hook"], "default": "agent"},
    "path": {"type": "path", "required": True},
    PACKED: {"type": "str"},
}


@ending_in_words
def main():
    module = Module(argument_spec=ARGUMENTS, supports_check_mode=True)
    path, content, python = module.params["path"], programs.taken(module), interpreter.lasting()
    if module.params["name"] == "keepalived_hook":
        content = interpreter.run_by(python, content)
    programs.keep(module, path, content, paths=[path], python=python)


if __name__ == "__main__":
    main()
