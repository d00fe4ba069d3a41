#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: resolver_info
short_description: Read where a host has its names from, and what its resolver answers
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Returns what the role P(onprem.lb.resolver#role) needs to know about a host, in one call.
  - Changes nothing.
options:
  server:
    description: The address of a name server to ask.
    type: str
    default: ""
  answers:
    description: What it should answer, each with its C(name) and all of its C(addresses).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: A fully qualified name, without the final dot.
        type: str
        required: true
      addresses:
        description: The addresses to expect. For a family without one the answer is to be empty.
        type: list
        elements: str
        required: true
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: It changes nothing.
  diff_mode:
    support: none
    description: There is nothing to show.
  platform:
    support: full
    platforms: posix
    description: It reads Linux and systemd.
"""

EXAMPLES = r"""
- name: Read where the host has its names from
  onprem.lb.resolver_info:
  register: host
"""

RETURN = r"""
os_family:
  description: As RV(onprem.lb.host_info#module:os_family).
  type: str
  returned: success
addresses:
  description: The addresses at which others reach this host, IPv4 first.
  type: list
  elements: str
  returned: success
source:
  description: The address from which it sends to others; empty without a route.
  type: str
  returned: success
port_53:
  description: What listens on TCP port 53, as RV(onprem.lb.host_info#module:listeners).
  type: list
  elements: dict
  returned: success
resolved:
  description: Whether systemd-resolved runs.
  type: bool
  returned: success
resolved_config:
  description: The files of systemd-resolved's configuration, each below its path; empty without them.
  type: str
  returned: success
networkmanager:
  description: Whether NetworkManager runs.
  type: bool
  returned: success
resolv_conf:
  description: What C(/etc/resolv.conf) has, and the one that this collection keeps from before.
  type: dict
  returned: success
upstreams:
  description: The texts in which systemd-resolved and NetworkManager keep the name servers that they were given.
  type: dict
  returned: success
wrong:
  description: A sentence for each of O(answers) that O(server) does not give.
  type: list
  elements: str
  returned: success
"""

from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import resolver
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader

ANSWER = {
    "name": {"type": "str", "required": True, "no_log": False},
    "addresses": {"type": "list", "elements": "str", "required": True, "no_log": False},
}


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "server": {"type": "str", "default": "", "no_log": False},
            "answers": {"type": "list", "elements": "dict", "default": [], "options": ANSWER},
        },
        supports_check_mode=True,
    )
    wrong = resolver.wrong_answers(module.params["server"], module.params["answers"])
    module.exit_json(changed=False, wrong=wrong, **resolver.read(Reader.of(module)))


if __name__ == "__main__":
    main()
