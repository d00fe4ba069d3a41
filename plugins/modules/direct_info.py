#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: direct_info
short_description: Read whether a host can take part in direct return, and whether it does
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Compares a configuration with what the kernel has in force, and not with files.
  - Changes nothing.
options:
  server:
    description: The variables of the role P(onprem.lb.direct_server#role), without their prefix.
    type: dict
    required: true
extends_documentation_fragment:
  - onprem.lb.attributes.reads_only
"""

EXAMPLES = r"""
- name: Read whether this host can be a server
  onprem.lb.direct_info:
    server:
      interface: eth0
      services:
        - {name: api, bind: 192.0.2.100, port: 6443, servers: [192.0.2.11, 192.0.2.12]}
  register: host
"""

RETURN = r"""
faults:
  description: What keeps the host from taking part, in sentences.
  type: list
  elements: str
  returned: success
config:
  description: The text of the agent's configuration; empty if there are faults.
  type: str
  returned: success
differences:
  description: A sentence for each part that is not in force.
  type: list
  elements: str
  returned: success
  sample: ["192.0.2.100/32 is not on lo."]
"""

from ansible_collections.onprem.lb.plugins.module_utils._host.direct import host, wanted
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader


@ending_in_words
def main():
    module = Module(argument_spec={"server": {"type": "dict", "required": True}}, supports_check_mode=True)
    try:
        found = wanted.of_server(module.params["server"], host.read(Reader.of(module)))
    except OSError as error:
        module.fail_json(msg=f"The network of this host cannot be read: {error.strerror}. Use become.")
    module.exit_json(changed=False, **found._asdict())


if __name__ == "__main__":
    main()
