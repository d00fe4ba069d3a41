#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: layout_members
short_description: Record what the inventory says of the members of a layout
version_added: 1.1.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - It records every host of the play in one task, which must say C(run_once=true).
  - It records the members outside C(--limit), too.
  - It connects to no host. Variables that are close to one of the layout's are warned of.
options:
  layout:
    description: The role whose variables are read.
    type: str
    required: true
    choices: [pair, ipi]
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
- name: Record the members of the pair
  onprem.lb.layout_members:
    layout: pair
  run_once: true
  register: records
  no_log: true
"""

RETURN = r"""
faults:
  description: Why the members cannot be planned together.
  returned: always
  type: list
  elements: str
  sample: ["pair_members: lb3 is not a host in the inventory: correct the name."]
members:
  description: By name, each member as the internal filter C(layout_plans) takes it; none where there are faults.
  returned: always
  type: dict
"""
