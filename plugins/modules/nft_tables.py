#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nft_tables
short_description: Put tables of nftables in force
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Compares tables that are in force with their rulesets, and loads a ruleset where its table differs.
  - It does not keep the tables over a reboot. Load the same rulesets from a unit for that.
options:
  tables:
    description: The tables, in the family C(inet). Required, unless O(name) names one alone.
    type: list
    elements: dict
    suboptions:
      name:
        description: The name of the table.
        type: str
        required: true
      ruleset:
        description:
          - What C(nft --file) loads. It must replace the table, so it begins with C(add table) and C(delete table).
          - Needed where O(tables[].state=present).
        type: str
      state:
        description: Whether the table is in force.
        type: str
        choices: [present, absent]
        default: present
  name:
    description: The name of one table, as the module was called C(nft_table) in 1.0. Use O(tables).
    type: str
  ruleset:
    description: As O(tables[].ruleset), of the table O(name).
    type: str
  state:
    description: As O(tables[].state), of the table O(name).
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
  onprem.lb.nft_tables:
    tables:
      - name: no_telnet
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
not_in_force:
  description: The names of the tables that were not in force as asked for.
  returned: success
  type: list
  elements: str
"""

import functools
import os

from ansible_collections.onprem.lb.plugins.module_utils._host import nft_table
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words

TABLE = {
    "name": {"type": "str", "required": True, "no_log": False},
    "ruleset": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
ALONE = {**TABLE, "name": {"type": "str", "no_log": False}}


def put_in_force(run, wanted, dry):
    """Put a table in force, or delete it; return its difference, {} if there is none."""
    name, before, after = wanted["name"], nft_table.in_force(run, wanted["name"]), ""
    if wanted["state"] == "present":
        after = nft_table.wanted(run, name, wanted["ruleset"])
    if before == after:
        return {}
    if after and not dry:
        nft_table.load(run, wanted["ruleset"])
    elif not dry:
        nft_table.delete(run, name)
    return {"before_header": name, "after_header": name, "before": before, "after": after}


def asked(module):
    """Return the tables; one alone is as the module was called in 1.0."""
    if module.params["tables"] is not None:
        return module.params["tables"]
    alone = {key: module.params[key] for key in ALONE}
    if alone["state"] == "present" and alone["ruleset"] is None:
        module.fail_json(msg=f"The table {alone['name']} lacks a ruleset: add it.")
    return [alone]


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "tables": {
                "type": "list",
                "elements": "dict",
                "options": TABLE,
                "required_if": [("state", "present", ["ruleset"])],
            },
            **ALONE,
        },
        required_one_of=[("tables", "name")],
        mutually_exclusive=[("tables", "name")],
        supports_check_mode=True,
    )
    tables = asked(module)
    nft = module.get_bin_path("nft")  # also where sudo's PATH lacks its folder
    present = [table["name"] for table in tables if table["state"] == "present"]
    if not nft and present and not module.check_mode:
        module.fail_json(msg=f"The table {present[0]} needs nft: install the package nftables.")
    if not nft:
        module.exit_json(changed=bool(present), not_in_force=present)
    run, diff = functools.partial(module.run_command, path_prefix=os.path.dirname(nft)), []
    for table in tables:
        try:
            diff.append(put_in_force(run, table, module.check_mode))
        except nft_table.Refused as refused:
            module.fail_json(msg=f"The table {table['name']} was not changed. {refused}")
    differing = [table["name"] for table, each in zip(tables, diff) if each]
    module.exit_json(changed=bool(differing), not_in_force=differing, diff=[each for each in diff if each])


if __name__ == "__main__":
    main()
