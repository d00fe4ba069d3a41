#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: member_lock
short_description: Let only one run at a time change a host
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Takes a lock on the host, or fails and says which run holds it. Deployments, removals and drills take it.
  - The lock belongs to the C(ansible-playbook) that takes it. If that has died, the next run from the same controller
    takes the lock over, if that is Linux. A run from elsewhere cannot know that, and needs O(break_variable).
  - A reboot of the host releases the lock.
  - It is the first module of a run. It says in a sentence why a host cannot be used, and refuses a play with C(serial)
    or with a strategy in which hosts do not wait for each other.
options:
  state:
    description: Whether this run holds the lock.
    type: str
    choices: [present, absent]
    default: present
  purpose:
    description: What the run does, for the message of a run that must wait.
    type: str
    default: a run
  break_variable:
    description: The name of a variable that is true where the lock of another run is to be broken.
    type: str
  downgrade_variable:
    description:
      - The name of a variable that is true where this version may change what a newer version of this collection has
        set up on the host.
      - The module fails on such a host otherwise, in a dry run, too. Without a name it does not look.
    type: str
  downgrades:
    description: Whether that variable is true. The action plugin fills it in.
    type: bool
    default: false
  holder:
    description: The run that takes the lock. The action plugin fills it in.
    type: dict
  replaces:
    description: The run whose lock is replaced. The action plugin fills it in.
    type: dict
attributes:
  check_mode:
    description: A dry run neither takes the lock nor respects it.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  platform:
    description: The lock is a file in C(/run).
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Lock the host
  onprem.lb.member_lock:
    purpose: an upgrade of the kernel

- name: Release the lock
  onprem.lb.member_lock:
    state: absent
"""

RETURN = r"""
held_by:
  description: The run that holds the lock, if it is another one. Empty if its record cannot be understood.
  returned: always
  type: dict
  sample:
    controller: bastion
    boot: 0c8c2d8e-6a0b-4e4b-9d2c-1f0b7c7f5b53 pid:[4026531836]
    pid: 4711
    started: "123456"
    user: anna
    purpose: setting the pair up
    since: "2026-01-31 12:00:00 UTC"
at:
  description: When this task began on the controller, in seconds since 1970.
  returned: success
  type: float
answered:
  description: Whether the host could be connected to. The action plugin says so of a host that it could not use.
  returned: if the module did not run
  type: bool
interrupted:
  description: How this member takes back what an interrupted run has changed, which is due or under way; else empty.
  returned: success
  type: str
  sample: first
taken:
  description: Whether this run did not hold the lock before, and so is to release it.
  returned: always
  type: bool
"""

import os

from ansible_collections.onprem.lb.plugins.module_utils._host import records
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.read import newer
from ansible_collections.onprem.lb.plugins.module_utils._host.write import lock


@ending_in_words
def main():
    module = Module(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "purpose": {"type": "str", "default": "a run", "no_log": False},
            "break_variable": {"type": "str", "no_log": False},
            "downgrade_variable": {"type": "str", "no_log": False},
            "downgrades": {"type": "bool", "default": False},
            "holder": {"type": "dict"},
            "replaces": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    mine, done = module.params["holder"], lock.Taken()
    if mine is None:
        module.fail_json(msg="member_lock does not know its run: it works through its action plugin only.")
    if module.params["state"] == "present" and not os.access(os.path.dirname(lock.PATH), os.W_OK):
        mend = "this takes root: set become: true, and no ansible_become_user but root."
        module.fail_json(msg=f"{lock.PATH} may not be written: {mend}")
    try:
        records.due()
    except ValueError as damaged:
        module.fail_json(msg=f"{damaged} Remove this file, and repeat the run.")
    variable = module.params["downgrade_variable"]
    looks = variable and not module.params["downgrades"] and module.params["state"] == "present"
    refused = newer.refusal(variable) if looks else ""
    if refused:
        module.fail_json(msg=refused)
    try:
        if not module.check_mode and module.params["state"] == "present":
            done = lock.take(lock.PATH, mine, module.params["replaces"])
            if done.is_new:  # what an earlier run must not change any more, this one may
                records.forget(records.RETURNED)
        elif not module.check_mode:
            lock.release(lock.PATH, mine)
    except lock.Refused as refused:
        module.fail_json(msg=str(refused))
    except OSError as fault:
        module.fail_json(msg=f"{lock.PATH} cannot be written: {fault.strerror}.")
    interrupted = records.due().get("role", "")
    module.exit_json(changed=False, held_by=done.held_by, taken=done.is_new, interrupted=interrupted)


if __name__ == "__main__":
    main()
