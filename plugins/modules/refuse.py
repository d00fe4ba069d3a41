#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: refuse
short_description: Fail with the faults that were found
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles and playbooks of this collection. It may change in any release.
  - It does nothing where there is no fault.
  - The M(ansible.builtin.assert) module would evaluate the faults twice, for its condition and for its message.
options:
  faults:
    description: A sentence for each fault.
    type: list
    elements: str
    required: true
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
  description: The faults.
  returned: when there are any
  type: list
  elements: str
  sample: ["pair_vips is empty: name the VIPs."]
"""
