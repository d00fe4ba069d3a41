#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: refuse
short_description: Fail with the faults that were found, or show what is planned
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles and playbooks of this collection. It may change in any release.
  - It does nothing where there is no fault, and connects to no host.
  - The M(ansible.builtin.assert) module would evaluate the faults twice, for its condition and for its message.
options:
  faults:
    description: A sentence for each fault.
    type: list
    elements: str
  lines:
    description: What to show where there is no fault.
    type: list
    elements: str
  outputs:
    description:
      - The names of variables that name a file or a folder on the controller, which the playbook is to write.
      - Each is tried. One that cannot be written is a fault, and so is a file that no earlier run has written.
      - In check mode only the latter is a fault. Set C(check_mode=false) where the playbook writes in check mode, too.
    type: list
    elements: str
  tags:
    description:
      - The tags of the playbook. One of the command line that no task has is a fault, of which Ansible says nothing.
      - It finds none where the command line names a playbook of yours that imports one of this collection.
    type: list
    elements: str
  variables:
    description:
      - Whether to evaluate each variable of the collection by itself, and say which of them cannot be evaluated.
      - It also says which variables of the roles P(onprem.lb.haproxy#role), P(onprem.lb.keepalived#role),
        P(onprem.lb.agent#role) and P(onprem.lb.drill#role) are wrong whatever the host is.
      - In a task with C(run_once=true) it judges those of each host of the play.
    type: bool
attributes:
  check_mode:
    description: It changes nothing.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  platform:
    description: It runs on the controller.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Refuse what no host could do
  onprem.lb.refuse:
    faults: "{{ pair_faults }}"
"""

RETURN = r"""
msg:
  description: The faults, or else the lines.
  returned: when there are any
  type: list
  elements: str
  sample: ["pair_vips is empty: name the VIPs."]
"""
