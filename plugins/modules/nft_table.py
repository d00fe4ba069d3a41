#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nft_table
short_description: Put a table of nftables in force
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Compares a table that is in force with a ruleset, and loads the ruleset where they differ.
  - It does not keep the table over a reboot. Load the same ruleset from a unit for that.
options:
  name:
    description: The name of the table, in the family C(inet).
    type: str
    required: true
  ruleset:
    description:
      - What C(nft --file) loads. It must replace the table, so it begins with C(add table) and C(delete table).
      - Needed with O(state=present).
    type: str
  state:
    description: Whether the table is in force.
    type: str
    choices: [present, absent]
    default: present
requirements:
  - nft
  - unshare, of util-linux
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    description: Where nft is not installed yet, every table counts as absent.
    support: full
  diff_mode:
    description: Shows both tables, as nft lists them.
    support: full
  platform:
    description: nftables is a part of Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Block telnet
  onprem.lb.nft_table:
    name: no_telnet
    ruleset: |
      add table inet no_telnet
      delete table inet no_telnet
      table inet no_telnet {
        chain input {
          type filter hook input priority 0; policy accept;
          tcp dport 23 drop
        }
      }
"""

RETURN = r"""
table:
  description: The table as nft lists it, or would list it. Empty if it is absent.
  returned: success
  type: str
in_force:
  description: Whether the table was in force as asked for already.
  returned: success
  type: bool
"""

import functools
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._host import nft_table


def run_module(module, nft):
    name, ruleset = module.params["name"], module.params["ruleset"]
    run = functools.partial(module.run_command, path_prefix=os.path.dirname(nft))
    before, after = nft_table.in_force(run, name), ""
    if ruleset and module.params["state"] == "present":
        after = nft_table.wanted(run, name, ruleset)
    if before != after and not module.check_mode:
        if after:
            nft_table.load(run, ruleset)
        else:
            nft_table.delete(run, name)
    as_asked = before == after
    return {"changed": not as_asked, "in_force": as_asked, "table": after, "diff": {"before": before, "after": after}}


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "ruleset": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ["ruleset"])],
        supports_check_mode=True,
    )
    nft = module.get_bin_path("nft")  # also where sudo's PATH lacks its folder
    if not nft:
        is_present = module.params["state"] == "present"
        if is_present and not module.check_mode:
            module.fail_json(msg=f"The table {module.params['name']} needs nft: install the package nftables.")
        module.exit_json(changed=is_present, in_force=not is_present, table="")
    try:
        module.exit_json(**run_module(module, nft))
    except nft_table.Refused as refused:
        module.fail_json(msg=f"The table {module.params['name']} was not changed. {refused}")


if __name__ == "__main__":
    main()
