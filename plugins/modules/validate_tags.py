#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validate_tags
short_description: Refuse tags that no task of a playbook has
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the playbooks of this collection. It may change in any release.
  - Of a tag that no task has, Ansible says nothing. It does nothing, or skips nothing.
  - It connects to no host, and finds no fault where the command line names a playbook of yours that imports one of this
    collection.
options:
  known:
    description: The tags of the playbook.
    type: list
    elements: str
    default: []
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
- name: Refuse a tag that no task has
  onprem.lb.validate_tags:
    known: [preflight, install, configure, verify]
"""

RETURN = r"""
msg:
  description: A sentence for each fault.
  returned: when a tag is wrong
  type: list
  elements: str
  sample: ["--tags names deploy, which no task has: choose of preflight, install, configure, verify."]
"""
