#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validate_variables
short_description: Refuse variables of this collection that no host could use
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Internal to the roles of this collection. It may change in any release.
  - Evaluates each variable of the collection by itself, and says which of them cannot be evaluated.
  - Says which variables of the roles P(onprem.lb.haproxy#role), P(onprem.lb.keepalived#role), P(onprem.lb.agent#role)
    and P(onprem.lb.drill#role) are wrong whatever the host is.
  - It connects to no host.
options: {}
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
  onprem.lb.validate_variables:
"""

RETURN = r"""
msg:
  description: A sentence for each fault.
  returned: when a variable is wrong
  type: list
  elements: str
  sample: ["pair_vips refers to itself: give it a value."]
"""
